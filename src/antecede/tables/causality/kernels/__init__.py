"""Compiled: stamps over chains, cuts and recovery lines, reachability."""
