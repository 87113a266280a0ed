"""Example pipeline: services, a broker, Spark and a report page (`make pipeline`).

    orders, payments, shipping  --events with causes-->  topics orders, payments, shipping
    courier   copies each topic to lake.*: late, repeated, out of order, with an outage
    spark     reads lake.*, `antecede.spark.order`, writes a Delta table; gets killed
    check     compares the table with the logs of the services

Every box is a process, started and stopped by `python -m pipeline`. Without a broker the same
pipeline uses files (docs/pipeline.md).
"""
