"""Services, a broker, Spark and a page: causal order as a running pipeline (`make pipeline`).

    orders, payments, shipping  --stamped events-->  topics orders, payments, shipping
    courier   carries each topic to lake.*: late, repeated, out of order, with an outage
    spark     reads lake.*, `antecede.spark.order`, writes a Delta table; gets killed
    check     the table against what the services logged themselves, by plain sets

Every box is an operating system process, started and ended by `python -m pipeline`. Without
a broker the same runs over files. docs/pipeline.md says what it shows.
"""
