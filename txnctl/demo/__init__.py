"""A bank in miniature: the transactions that the demo, the benchmarks and the tests put through a store.

    transaction   one line of an account's history
    generator     whole histories from a seed, in the shape of the Czech bank data of PKDD'99
    csv_file      whole histories from a file, each line checked
    request       a bank transaction as messages, and back
    clients       the actors: A1 and A2 send, D watches, E does the business
    child         child processes of the story: A1, and the casualty
    casualty      an E that is killed in the middle of its work
    script        the lines, divided into those before, during and after the open transfer
    narrator      output of the story, and its checks
    story         the acts of `txnctl demo`, in order
    facts         the numbers of each act
    audit         final checks, read from the store anew
    cluster       a primary and a synchronous standby of the demo's own
    cluster_story the story on that cluster, whose primary is killed
    spark_story   the story on Spark: two streaming queries with different isolation levels
    spark_driver  the driver of these queries, which is killed in the middle
    spark_watch   the story's handle of that driver

Nothing here imports click. Only `commands/demo`, examples/settlement, the benchmarks and the tests import this package;
the parser of amounts, which pipelines need too, is `txnctl.pipelines.hellers`.
"""
