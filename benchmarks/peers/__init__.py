"""The peers: a module for each, doing the job as its own users would."""
