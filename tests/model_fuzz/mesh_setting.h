// How the workers of a case share its training: the mesh, what each worker keeps, and how sums
// travel. As text these are keys of [cluster].
#pragma once

#include <string>
#include <vector>

#include "artel/base/random.h"
#include "artel/run/config/config.h"

namespace artel::model_fuzz {

struct MeshSetting {
  int64_t pipeline = 1, tensor = 1, shards = 1;
  std::string strategy = "auto", schedule = "auto", cuts = "estimated", sharding = "none";
  std::string reduction = "exact", compress = "none";
  int64_t local_steps = 1;
  int64_t servers = 0, replicas = 1;  // of the strategy "ps"
  int64_t bucket_bytes = 0;           // 0: the default
  bool moves_lanes = false;           // between workers, after each step

  // Any number of workers has the bits of one.
  bool is_exact() const;
  int64_t workers_of_a_copy() const { return pipeline * tensor; }
  // The stages of a pipeline.
  int64_t stages() const;
  StrategyOptions options() const;
  // The same shards on one worker.
  MeshSetting alone() const { return {.shards = shards}; }
  bool operator==(const MeshSetting&) const = default;
};

// One that this number of workers accepts.
MeshSetting random_mesh(Random& random, int64_t workers);

// Lines of [cluster], only those that differ from the defaults.
std::string to_toml(const MeshSetting& mesh);
MeshSetting mesh_of(const ClusterConfig& cluster);

// Each with one setting less.
std::vector<MeshSetting> simpler(const MeshSetting& mesh);

}  // namespace artel::model_fuzz
