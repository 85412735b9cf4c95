"""What ours is compared with: one module a peer, each doing the job as its own users would."""
