#include "tests/model_fuzz/mesh_setting.h"

#include <fmt/format.h>

#include "artel/plan/schedule.h"
#include "artel/train/step/exchange.h"
#include "artel/train/strategies/options.h"
#include "tests/model_fuzz/moving_lanes.h"
#include "tests/model_fuzz/random_layers.h"

namespace artel::model_fuzz {
namespace {

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> all;
  for (int64_t i = 1; i <= number; ++i)
    if (number % i == 0) all.push_back(i);
  return all;
}

std::string random_sharding(Random& random, bool weights) {
  std::vector<std::string> levels = {"none", "optimizer", "gradients"};
  if (weights) levels.push_back("weights");
  return pick(random, levels);
}

MeshSetting random_axes(Random& random, int64_t workers) {
  MeshSetting mesh;
  while (mesh.pipeline * mesh.tensor == 1) {
    mesh.pipeline = pick(random, divisors(workers));
    mesh.tensor = one_in(random, 3) ? pick(random, divisors(workers / mesh.pipeline)) : 1;
  }
  if (mesh.tensor > 1) mesh.shards = mesh.tensor * (one_in(random, 4) ? 2 : 1);
  if (mesh.pipeline > 1) {
    if (!one_in(random, 4)) mesh.schedule = pick(random, plan::schedule_names());
    mesh.cuts = pick<std::string>(random, {"estimated", "estimated", "layers", "parameters"});
  }
  mesh.sharding = random_sharding(random, mesh.pipeline == 1);
  return mesh;
}

// Workers that lose bits on the way: they agree with each other, not with one worker.
MeshSetting random_losses(Random& random) {
  static const std::vector<std::string> codecs = {"fp16", "bf16",      "int8",
                                                  "sign", "top-k 10%", "powersgd 2"};
  MeshSetting mesh;
  if (one_in(random, 3)) {
    mesh.reduction = "fast";
  } else {
    if (one_in(random, 2)) mesh.local_steps = between(random, 2, 3);
    if (mesh.local_steps == 1 || one_in(random, 2)) mesh.compress = pick(random, codecs);
  }
  return mesh;
}

MeshSetting random_servers(Random& random) {
  MeshSetting mesh;
  mesh.strategy = "ps";
  mesh.servers = between(random, 1, 3);
  if (mesh.servers > 1 && one_in(random, 4)) mesh.replicas = 2;
  return mesh;
}

MeshSetting random_kind(Random& random, int64_t workers) {
  MeshSetting mesh;
  switch (random.below(9)) {
    case 0:
      return random_losses(random);
    case 1:
      mesh.strategy = pick(random, exchange_names());
      if (mesh.strategy != "coordinator") mesh.sharding = random_sharding(random, true);
      if (mesh.sharding == "none" && !can_be_exact(mesh.strategy)) mesh.reduction = "fast";
      return mesh;
    case 2:
      mesh.sharding = "weights";
      return mesh;
    case 3:
      return random_servers(random);
    default:
      return random_axes(random, workers);
  }
}

}  // namespace

bool MeshSetting::is_exact() const {
  return reduction == "exact" && compress == "none" && local_steps == 1;
}

int64_t MeshSetting::stages() const {
  const bool several = schedule != "auto" && plan::schedule_kind(schedule).several_stages;
  return pipeline > 1 && several ? 2 * pipeline : pipeline;
}

StrategyOptions MeshSetting::options() const {
  return {PipelineOptions{.pipeline = pipeline, .schedule = schedule, .cuts = cuts},
          TensorOptions{.tensor = tensor},
          ShardsOptions{.shards = shards},
          ShardingOptions{.sharding = sharding},
          SynchronousOptions{.reduction = reduction},
          PackingOptions{.compress = compress},
          ReplicaOptions{.replicas = replicas},
          MovingLanesOptions{.moves_lanes = moves_lanes},
          LocalStepsOptions{.local_steps = local_steps}};
}

MeshSetting random_mesh(Random& random, int64_t workers) {
  MeshSetting mesh = random_kind(random, workers);
  if (one_in(random, 3)) mesh.bucket_bytes = pick<int64_t>(random, {1, 64, 256, 1024, 4096});
  mesh.moves_lanes = mesh.is_exact() && mesh.workers_of_a_copy() == 1 && one_in(random, 3);
  return mesh;
}

std::string to_toml(const MeshSetting& mesh) {
  const MeshSetting none;
  std::string text;
  const auto number = [&](const char* key, int64_t MeshSetting::*field) {
    if (mesh.*field != none.*field) text += fmt::format("{} = {}\n", key, mesh.*field);
  };
  const auto word = [&](const char* key, std::string MeshSetting::*field) {
    if (mesh.*field != none.*field) text += fmt::format("{} = \"{}\"\n", key, mesh.*field);
  };
  number("pipeline", &MeshSetting::pipeline);
  number("tensor", &MeshSetting::tensor);
  number("shards", &MeshSetting::shards);
  word("strategy", &MeshSetting::strategy);
  word("schedule", &MeshSetting::schedule);
  word("cuts", &MeshSetting::cuts);
  word("sharding", &MeshSetting::sharding);
  word("reduction", &MeshSetting::reduction);
  word("compress", &MeshSetting::compress);
  number("local_steps", &MeshSetting::local_steps);
  number("servers", &MeshSetting::servers);
  number("replicas", &MeshSetting::replicas);
  number("bucket_size", &MeshSetting::bucket_bytes);
  if (mesh.moves_lanes) text += "moves_lanes = true\n";
  return text;
}

MeshSetting mesh_of(const ClusterConfig& cluster) {
  const StrategyOptions& options = cluster.strategy_options;
  const auto& pipeline = options.of<PipelineOptions>();
  const std::string& compress = options.of<PackingOptions>().compress;
  return {.pipeline = pipeline.pipeline,
          .tensor = options.of<TensorOptions>().tensor,
          .shards = std::max<int64_t>(1, options.of<ShardsOptions>().shards),
          .strategy = cluster.strategy,
          .schedule = pipeline.schedule,
          .cuts = pipeline.cuts,
          .sharding = options.of<ShardingOptions>().sharding,
          .reduction = reduction_of(
              {.strategy = cluster.strategy, .strategy_options = cluster.strategy_options}),
          .compress = compress.empty() ? "none" : compress,
          .local_steps = options.of<LocalStepsOptions>().local_steps,
          .servers = cluster.servers,
          .replicas = options.of<ReplicaOptions>().replicas,
          .bucket_bytes = static_cast<int64_t>(cluster.bucket_size.bytes),
          .moves_lanes = options.of<MovingLanesOptions>().moves_lanes};
}

std::vector<MeshSetting> simpler(const MeshSetting& mesh) {
  std::vector<MeshSetting> all;
  const MeshSetting none;
  const auto add = [&](auto MeshSetting::*field) {
    if (mesh.*field == none.*field) return;
    all.push_back(mesh);
    all.back().*field = none.*field;
  };
  add(&MeshSetting::sharding);
  if (mesh.servers > 0) {
    all.push_back(mesh);
    all.back().strategy = none.strategy;
    all.back().servers = none.servers;
    all.back().replicas = none.replicas;
  } else {
    add(&MeshSetting::strategy);
  }
  add(&MeshSetting::replicas);
  if (mesh.servers > mesh.replicas) {
    all.push_back(mesh);
    all.back().servers = mesh.replicas;
  }
  add(&MeshSetting::bucket_bytes);
  add(&MeshSetting::moves_lanes);
  add(&MeshSetting::schedule);
  add(&MeshSetting::cuts);
  add(&MeshSetting::reduction);
  add(&MeshSetting::compress);
  add(&MeshSetting::local_steps);
  add(&MeshSetting::pipeline);
  if (mesh.tensor > 1) {
    all.push_back(mesh);
    all.back().tensor = all.back().shards = 1;
  }
  if (mesh.shards > mesh.tensor) {
    all.push_back(mesh);
    all.back().shards = mesh.tensor;
  }
  return all;
}

}  // namespace artel::model_fuzz
