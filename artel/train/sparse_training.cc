#include "artel/train/sparse_training.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "artel/base/error.h"
#include "artel/data/column_blocks.h"
#include "artel/train/agreement.h"

namespace artel {
namespace {

// Two kinds of targets become -1 and 1; other losses take them as they are.
class Targets {
 public:
  Targets(const data::SparseFile& file, const std::filesystem::path& path, bool logistic) {
    if (!logistic) return;
    require(file.targets().size() == 2, ErrorKind::unsupported,
            "[{}] targets: got {} kinds, expected two for logistic regression; try train.loss = "
            "\"mse\"",
            path.string(), file.targets().empty() ? "many" : std::to_string(file.targets().size()));
    positive_ = file.targets()[1];
  }
  float of(float target) const {
    if (!positive_) return target;
    return target == *positive_ ? 1.0f : -1.0f;
  }

 private:
  std::optional<float> positive_;
};

// A collective call: worker 0 tells what indices count from in all files.
void settle_indices(comm::Group& workers, data::SparseFile& train,
                    std::optional<data::SparseFile>& test) {
  int64_t first_index = 0;
  if (workers.rank() == 0)
    first_index =
        test ? data::common_first_index({&train, &*test}) : data::common_first_index({&train});
  workers.broadcast(std::as_writable_bytes(std::span(&first_index, 1)), 0,
                    {.label = "first index"});
  train.count_from(first_index);
  if (test) test->count_from(first_index);
}

SparseTest test_of(const data::SparseFile& file, const std::vector<float>& weights,
                   const Targets& targets, bool logistic) {
  SparseTest test = {.samples = file.size()};
  data::SparseSample sample;
  for (int64_t row = 0; row < file.size(); ++row) {
    file.read(row, sample);
    double margin = weights.back();
    for (size_t i = 0; i < sample.features.size(); ++i) {
      const auto feature = static_cast<size_t>(sample.features[i]);
      if (feature + 1 < weights.size()) margin += weights[feature] * sample.values[i];
    }
    const double target = targets.of(sample.target);
    test.correct += target * margin > 0 ? 1 : 0;
    test.loss += logistic ? std::log1p(std::exp(-target * margin))
                          : 0.5 * (margin - target) * (margin - target);
  }
  test.loss /= static_cast<double>(std::max<int64_t>(1, file.size()));
  return test;
}

}  // namespace

SparseTraining train_sparse(Cluster& cluster, const SparseTrainingOptions& options,
                            const ps::AfterPass& after_pass) {
  require(cluster.servers() > 0, ErrorKind::invalid_argument,
          "the strategy ddpg needs parameter servers, got none");
  comm::Group& workers = *cluster.group();
  const bool logistic = options.solver.loss == "logistic";
  const bool first = cluster.rank() == 0;
  data::SparseFile file(map_file(options.train));
  std::optional<data::SparseFile> test;  // worker 0 alone has it
  if (first && !options.test.empty()) test.emplace(map_file(options.test));
  require(file.size() > 0 && options.blocks >= 1, ErrorKind::invalid_argument,
          "[{}] got {} samples and {} blocks, expected at least one of each",
          options.train.string(), file.size(), options.blocks);
  settle_indices(workers, file, test);
  const Targets targets(file, options.train, logistic);
  const auto features = static_cast<uint64_t>(file.features());
  ps::DelayedProximalOptions solver = options.solver;
  workers.broadcast(std::as_writable_bytes(std::span(&solver.passes_done, 1)), 0,
                    {.label = "passes"});
  require(solver.passes_done < solver.passes, ErrorKind::invalid_argument,
          "[ddpg] passes: all {} are done; try a larger train.epochs", solver.passes);
  check_agreement(workers, {{"samples", std::to_string(file.size())},
                            {"features", std::to_string(features)},
                            {"blocks", std::to_string(options.blocks)},
                            {"loss", solver.loss},
                            {"l1", fmt::format("{}", solver.penalty.l1)},
                            {"l2", fmt::format("{}", solver.penalty.l2)},
                            {"delay", solver.delay ? std::to_string(*solver.delay) : "none"},
                            {"passes", std::to_string(solver.passes)},
                            {"seed", std::to_string(solver.seed)}});

  std::filesystem::create_directories(options.scratch);
  const std::filesystem::path columns =
      options.scratch / fmt::format("columns-{}-{}.bin", ::getpid(), cluster.rank());
  const std::vector<uint64_t> cuts = data::balanced_cuts(file, options.blocks);
  const ps::SparseProblem problem = {
      .cuts = cuts,
      .constant = features,
      .size = file.size(),
      .samples = [&](int64_t first, int64_t last) {
        const auto blocks =
            std::make_shared<const data::ColumnBlocks>(file, first, last, cuts, columns, features);
        std::filesystem::remove(columns);  // it lives as long as it is mapped
        ps::SparseSamples samples = {.block = [blocks](int block) -> ps::SparseBlock {
          const data::ColumnBlock& part = blocks->block(block);
          return {part.features, part.starts, part.rows, part.values};
        }};
        for (const float target : blocks->targets()) samples.targets.push_back(targets.of(target));
        return samples;
      }};
  ps::Client client(
      *cluster.world(), cluster.size(),
      ps::ShardMap::even(ps::problem_keys(problem, cluster.size()), cluster.servers()),
      solver.seed);
  SparseTraining result = {.features = file.features()};
  result.last = ps::delayed_proximal(client, workers, problem, solver, after_pass,
                                     first ? &result.weights : nullptr);
  if (first) result.servers = client.report();
  client.leave();
  if (test) result.test = test_of(*test, result.weights, targets, logistic);
  return result;
}

}  // namespace artel
