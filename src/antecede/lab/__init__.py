"""Protocol checker, simulator, diagrams, playground, recorder and reproductions."""
