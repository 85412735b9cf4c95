"""Tables: ordered keys with many versions, write intents, the rules of K2-3SI. Tables do not see topics."""
