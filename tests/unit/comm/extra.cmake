set(shards 4)
