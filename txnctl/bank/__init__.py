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

Nothing here knows of click, and nothing outside the demo, examples/settlement, the benchmarks and the tests imports it.
"""
