"""Tables: ordered keys with many versions, write intents, the rules of K2-3SI. They do not see topics."""
