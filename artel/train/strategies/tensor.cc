#include "artel/train/strategies/tensor.h"

#include "artel/base/error.h"
#include "artel/optim/optimizer.h"
#include "artel/train/strategies/divided.h"
#include "artel/train/strategies/shared_options.h"

namespace artel {

void TensorOptions::visit(KeyVisitor& field) {
  field(
      {.name = "cluster.tensor",
       .help = "Workers per tensor group, which share the columns, rows, and heads of each layer; "
               "must divide the number of workers. 1: each worker has whole layers.",
       .least = 1},
      tensor);
}

int shards_of(const StrategyOptions& options) {
  const int64_t shards = options.of<ShardsOptions>().shards;
  return static_cast<int>(shards > 0 ? shards : options.of<TensorOptions>().tensor);
}

int workers_sharing_layers(const StrategyOptions& options, int workers) {
  const auto size = static_cast<int>(options.of<TensorOptions>().tensor);
  require(workers > 1 || size == 1, ErrorKind::invalid_argument,
          "cluster.tensor: got {} for one worker, expected as many workers or a multiple; try -n "
          "{}, or cluster.tensor = 1 with cluster.shards = {} for the same bits",
          size, size, shards_of(options));
  require(workers % size == 0, ErrorKind::invalid_argument,
          "cluster.tensor: got {} for {} workers, expected a number that divides them; try {}",
          size, workers, divisors_of(workers));
  return size;
}

void check_tensor(const Situation& now) {
  const StrategyOptions& options = now.options.strategy_options;
  const int size = workers_sharing_layers(options, now.cluster.size()), shards = shards_of(options);
  if (shards == 1) return;
  require(shards % size == 0, ErrorKind::invalid_argument,
          "cluster.shards: got {} for cluster.tensor = {}, expected a multiple of it; try {}",
          shards, size, (shards + size - 1) / size * size);
  const auto refuse = [&](bool wrong, std::string_view with, std::string_view instead) {
    require(!wrong, ErrorKind::invalid_argument,
            "cluster.{}: got {} with {}, expected 1; try that, or {}",
            size > 1 ? "tensor" : "shards", size > 1 ? size : shards, with, instead);
  };
  refuse(!adds_sums(now), fmt::format("the strategy \"{}\"", now.options.strategy),
         "the strategy \"auto\" without parameter servers");
  refuse(
      optim::make_optimizer(now.options.optimizer)->scope() == optim::Optimizer::Scope::parameter,
      "an optimizer of your own that has to see each parameter as a whole", "\"adamw\"");
}

}  // namespace artel
