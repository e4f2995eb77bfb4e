// Options shared by several strategies.
//
//   artel::TrainerOptions options = {.strategy = "ps"};
//   options.strategy_options = {artel::DelayOptions{.delay = 4}, artel::PackingOptions{"int8"}};
#pragma once

#include "artel/base/keys.h"

namespace artel {

struct PackingOptions {
  std::string compress = {};  // codec; empty means none

  void visit(KeyVisitor& field) {
    field({"cluster.compress", "Compression of gradients on the network, such as `\"top-k 1%\"`."},
          compress);
  }
};

struct ShardsOptions {
  int64_t shards = 0;  // 0 means the number of workers that share a layer

  void visit(KeyVisitor& field) {
    field({.name = "cluster.shards",
           .help = "Number of parts per layer. The bits depend on it, not on `cluster.tensor`, "
                   "which must divide it. 0: as many as "
                   "`cluster.tensor`.",
           .least = 0},
          shards);
  }
};

struct MirrorOptions {
  int64_t mirror_every = 16;

  void visit(KeyVisitor& field) {
    field({.name = "cluster.mirror_every",
           .help = "Steps between copies of each worker's part of the state to another worker. "
                   "The run continues from them if a worker is lost. `0`: no copies; the run then "
                   "ends and must be resumed from a checkpoint. Copies need up to four times the "
                   "memory of the part, and are disabled if that exceeds a quarter of the free "
                   "memory.",
           .least = 0},
          mirror_every);
  }
};

struct AllowLossyOptions {
  bool allow_lossy = false;

  void visit(KeyVisitor& field) {
    field({.name = "cluster.allow_lossy",
           .help = "Allow `auto` to use lossy compression and local steps.",
           .with = {"auto"}},
          allow_lossy);
  }
};

struct ReplicaOptions {
  int64_t replicas = 1;

  void visit(KeyVisitor& field) {
    field({.name = "cluster.replicas",
           .help = "Number of parameter servers with a copy of each part of the weights. With 2, "
                   "any one server may die.",
           .least = 1,
           .most = 2},
          replicas);
  }
};

struct DelayOptions {
  std::optional<int64_t> delay = 0;  // empty means no limit

  void visit(KeyVisitor& field) {
    field({"cluster.delay",
           "Iterations by which a worker may be ahead of the slowest; `\"none\"`: no limit."},
          delay);
  }
};

}  // namespace artel
