// Options that several strategies have in common.
//
//   artel::TrainerOptions options = {.strategy = "ps"};
//   options.strategy_options = {artel::DelayOptions{.delay = 4}, artel::PackingOptions{"int8"}};
#pragma once

#include "artel/base/keys.h"

namespace artel {

struct PackingOptions {
  std::string compress = {};  // a codec; empty: none

  void visit(KeyVisitor& field) {
    field({"cluster.compress",
           "How gradients are compressed for the network, such as `\"top-k 1%\"`."},
          compress);
  }
};

struct ShardsOptions {
  int64_t shards = 0;  // 0: as many as workers that share a layer

  void visit(KeyVisitor& field) {
    field({.name = "cluster.shards",
           .help = "Number of parts that layers are cut into. The same number of shards gives the "
                   "same bits, whatever `cluster.tensor` is, which must divide it; 0: as many as "
                   "`cluster.tensor`.",
           .least = 0},
          shards);
  }
};

struct MirrorOptions {
  int64_t mirror_every = 16;

  void visit(KeyVisitor& field) {
    field({.name = "cluster.mirror_every",
           .help = "Steps after which what only one worker keeps is copied into the memory of "
                   "another one, from where the run goes on if a worker is lost; `0`: never, the "
                   "run then ends and is resumed from a checkpoint. Costs each worker up to four "
                   "times the memory of what it keeps, but never more than a quarter of what is "
                   "free: then there are no copies.",
           .least = 0},
          mirror_every);
  }
};

struct EconomyOptions {
  bool allow_lossy = false;

  void visit(KeyVisitor& field) {
    field({.name = "cluster.allow_lossy",
           .help = "Let `auto` choose compression and local steps too.",
           .with = {"auto"}},
          allow_lossy);
  }
};

struct ReplicaOptions {
  int64_t replicas = 1;

  void visit(KeyVisitor& field) {
    field(
        {.name = "cluster.replicas",
         .help = "On how many parameter servers each part of the weights is kept: with 2, any one "
                 "server may die.",
         .least = 1,
         .most = 2},
        replicas);
  }
};

struct DelayOptions {
  std::optional<int64_t> delay = 0;  // nothing: no limit

  void visit(KeyVisitor& field) {
    field({"cluster.delay",
           "How many iterations a worker may be ahead of the slowest; `\"none\"`: no limit."},
          delay);
  }
};

}  // namespace artel
