"""A bank in miniature: the transactions that the demo, the benchmarks and the tests put through a store.

    hellers       money as an exact integer of hundredths
    transaction   one line of an account's history
    generator     whole histories from a seed, in the shape of the Czech bank data of PKDD'99
    csv_file      the same from a file, each line checked
    request       a bank transaction as messages, and back
    clients       who acts: A1 and A2 send, D watches, E does the business
    child         processes beside the one that tells the story: A1, and the casualty
    casualty      an E that is killed in the middle of its work
    script        the lines, divided into what comes before, during and after the open transfer
    narrator      how the story is told and its checks are kept
    story         the acts of `txnctl demo`, in order
    audit         what must be true at the end, read from the store anew
    spark_story   the same story on Spark: two streaming queries with different isolation levels
    spark_driver  the driver of these queries, which is killed in the middle
    spark_watch   that driver as the story sees it

Nothing here knows of click, and nothing outside the demo, examples/settlement, the benchmarks and the tests imports it.
"""
