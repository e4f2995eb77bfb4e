set(shards 3)
