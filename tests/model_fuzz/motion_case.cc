#include "tests/model_fuzz/motion_case.h"

#include <fmt/format.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/data/tables/column_blocks.h"
#include "artel/data/tables/libsvm.h"
#include "artel/nn/layers.h"
#include "artel/nn/zoo/classic.h"
#include "artel/train/step/exchange.h"
#include "artel/train/strategies/options.h"
#include "tests/model_fuzz/check.h"
#include "tests/model_fuzz/random_layers.h"
#include "tests/reference/optimizers.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel::model_fuzz {
namespace {

constexpr int64_t kInputs = 3, kSamplesOfALane = 2;
constexpr double kRate = 0.01, kInitial = 1;

// With ddpg, the loss is half the squared distance from this target. It is so far away that its
// slope stays the same, and the rate so low that a step is `kRate` divided by the size of a block.
constexpr double kFarTarget = -1e5;

// Rules that move a weight by the same amount in each step, so that pushes of different sizes may
// arrive in any order.
const std::vector<std::string> kSteady = {"adam", "adamw", "sgd"};
// With ddpg, servers make proximal steps instead.
const std::vector<std::string> kOfServers = {"sgd"};
const std::vector<std::string> kAll = {"adam",    "adamw",   "sgd",  "momentum", "nesterov",
                                       "adagrad", "rmsprop", "lars", "lamb"};
// Codecs that lose nothing of gradients that are all equal.
const std::vector<std::string> kExactCodecs = {"fp16", "bf16", "int8", "sign"};

std::vector<std::string> rules_for(const MotionCase& motion) {
  if (motion.strategy == "ddpg") return kOfServers;
  std::vector<std::string> rules =
      motion.is_asynchronous() && !motion.has_equal_pushes() ? kSteady : kAll;
  // It trains with Adagrad instead.
  if (motion.strategy == "downpour") std::erase(rules, "sgd");
  return rules;
}

// False for an optimizer with which the movement depends on the order of pushes.
bool is_predictable(const MotionCase& motion) {
  return std::ranges::count(rules_for(motion), motion.optimizer) > 0;
}

optim::OptimizerConfig optimizer_of(const MotionCase& motion) {
  return optim::optimizer_from_options(
      {{"name", motion.optimizer}, {"lr", fmt::format("{}", kRate)}, {"weight_decay", "0"}});
}

using Weights = std::map<std::string, reference::Array>;

reference::Array row(std::vector<double> values) {
  return {{1, static_cast<int64_t>(values.size())}, std::move(values)};
}

// The network, its samples and options, and where all steps take the weights, in double precision.
struct Task {
  Model model;
  data::DatasetPtr set;
  TrainerOptions options;
  Weights expected;
};

Weights weights_after(const MotionCase& motion) {
  const auto all = [](double value) {
    return Weights{{"0.weight", row(std::vector<double>(kInputs, value))},
                   {"0.bias", {{1}, {value}}}};
  };
  Weights weights = all(kInitial);
  reference::Optimizer optimizer(optimizer_of(motion));
  int64_t updates = 0;
  const auto update = [&](int64_t times, double rate) {
    for (const int64_t end = updates + times; updates < end;)
      optimizer.update(weights, all(1), ++updates, rate);
  };
  const int64_t steps = motion.steps * motion.epochs;
  const int64_t apart = !motion.is_asynchronous()       ? 0
                        : motion.strategy == "downpour" ? steps - motion.steps  // after an epoch
                                                        : steps;
  update(steps - apart, kRate);
  // Each push is an update with its worker's share of the rate.
  update(apart * motion.workers, kRate / static_cast<double>(motion.workers));
  return weights;
}

Task dense_task(const MotionCase& motion) {
  const int64_t samples = motion.lanes * kSamplesOfALane * motion.steps;
  Tensor x({samples, kInputs}), y({samples, 1});
  std::ranges::fill(x.values<float>(), 1.0f);
  std::ranges::fill(y.values<float>(), -1e4f);
  return {.model = Model(nn::sequential({nn::dense(1)})),
          .set = data::tensor_dataset(x, y),
          .options = {.optimizer = optimizer_of(motion),
                      .loss = "l1",
                      .strategy_options = {LocalStepsOptions{.local_steps = motion.local_steps},
                                           DownpourOptions{.push_every = motion.push_every,
                                                           .fetch_every = motion.push_every},
                                           ReplicaOptions{.replicas = motion.replicas},
                                           PackingOptions{.compress = motion.compress}}},
          .expected = weights_after(motion)};
}

// Rows of ones. A coordinate has the curvature rows x size of its block, and the gradient
// rows x the distance from the target.
Task sparse_task(const MotionCase& motion, const std::filesystem::path& folder) {
  std::string text;
  for (int64_t i = 0; i < motion.lanes * kSamplesOfALane; ++i)
    text += fmt::format("{} 1:1 2:1 3:1\n", kFarTarget);
  const std::filesystem::path path = folder / "rows.libsvm";
  write_file_atomically(path, text);
  Task task = {.model = Model(nn::linear(0)),
               .set = data::libsvm(path, {}, 0, 0, true).train,
               .options = {.loss = "mse"}};
  const DelayedProximalOptions own = {.blocks = motion.blocks,
                                      .block_rate = kRate / std::abs(kFarTarget)};
  task.options.strategy_options = {own};
  const auto unseen = static_cast<double>(std::max<int64_t>(motion.delay, 1) - 1);
  const double slower = 1 + own.delay_damping * unseen * unseen / static_cast<double>(own.blocks);
  const std::vector<uint64_t> cuts =
      data::balanced_cuts(*task.set->sparse(), static_cast<int>(own.blocks));
  std::vector<double> values;
  for (size_t block = 0; block + 1 < cuts.size(); ++block)
    for (uint64_t key = cuts[block]; key < cuts[block + 1]; ++key)
      values.push_back(kInitial - kRate * static_cast<double>(motion.epochs) / slower /
                                      static_cast<double>(cuts[block + 1] - cuts[block]));
  task.expected["bias"] = {{1}, {values.back()}};
  values.pop_back();
  task.expected["weight"] = row(values);
  return task;
}

class Motion {
 public:
  explicit Motion(const MotionCase& motion)
      : motion_(motion),
        task_(motion.strategy == "ddpg" ? sparse_task(motion, folder_.path())
                                        : dense_task(motion)) {
    task_.options.threads = 1;
    task_.options.lanes = static_cast<int>(motion.lanes);
    task_.options.strategy = motion.strategy;
    task_.options.strategy_options.of<DelayOptions>().delay =
        motion.delay < 0 ? std::nullopt : std::optional(motion.delay);
  }

  std::optional<std::string> run() {
    const int64_t all = motion_.steps * motion_.epochs;
    if (motion_.resumed_after > 0) train_until(motion_.resumed_after, motion_.workers);
    train_until(all, motion_.resumed_by > 0 ? motion_.resumed_by : motion_.workers);
    for (const auto& [name, expected] : task_.expected) {
      const std::vector<float>& found = weights_.at(name);
      for (size_t i = 0; i < found.size(); ++i) {
        const double wanted = expected.data[i] - kInitial, moved = found[i] - kInitial;
        if (std::abs(moved - wanted) > 1e-3 * std::abs(wanted) + 1e-5)
          return fmt::format("'{}' has moved by {:.5f}, expected {:.5f} after {} steps", name,
                             moved, wanted, all);
      }
    }
    return std::nullopt;
  }

 private:
  void train_until(int64_t steps, int64_t workers) {
    const auto train = [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, task_.model, task_.options);
      trainer.build({DType::f32, task_.set->layout().input});
      if (rank == 0) {
        NamedTensors ones = trainer.weights();
        for (NamedTensor& weight : ones) {
          weight.tensor = weight.tensor.clone();
          std::ranges::fill(weight.tensor.values<float>(), static_cast<float>(kInitial));
        }
        trainer.load_weights(ones);
      }
      trainer.fit(task_.set, {.batch_size = motion_.lanes * kSamplesOfALane,
                              .epochs = motion_.epochs,
                              .steps = steps,
                              .checkpoints = folder_.path() / "run",
                              .resume = true});
      if (rank > 0) return;
      for (const NamedTensor& weight : trainer.weights()) {
        const auto values = weight.tensor.values<float>();
        weights_[weight.name].assign(values.begin(), values.end());
      }
    };
    on_workers(static_cast<int>(workers), train, static_cast<int>(motion_.servers));
  }

  const MotionCase& motion_;
  const TemporaryFolder folder_;
  Task task_;
  std::map<std::string, std::vector<float>> weights_;
};

std::vector<MotionCase> simpler(const MotionCase& motion) {
  std::vector<MotionCase> all;
  const auto with = [&](bool possible, const auto& change) {
    if (possible) change(all.emplace_back(motion));
  };
  with(motion.resumed_after > 0, [](MotionCase& m) { m.resumed_after = m.resumed_by = 0; });
  with(motion.resumed_by > 0, [](MotionCase& m) { m.resumed_by = 0; });
  with(motion.optimizer != rules_for(motion)[0],
       [&](MotionCase& m) { m.optimizer = rules_for(motion)[0]; });
  with(motion.local_steps > 1, [](MotionCase& m) { m.local_steps = 1; });
  with(motion.blocks > 1, [](MotionCase& m) { --m.blocks; });
  with(motion.compress != "none", [](MotionCase& m) { m.compress = "none"; });
  with(motion.replicas > 1, [](MotionCase& m) { m.replicas = 1; });
  with(motion.push_every > 1, [](MotionCase& m) { --m.push_every; });
  with(motion.servers > motion.replicas, [](MotionCase& m) { m.servers = m.replicas; });
  with(motion.workers > 1, [](MotionCase& m) {
    if (m.lanes == m.workers) --m.lanes;
    --m.workers;
  });
  with(motion.lanes > motion.workers, [](MotionCase& m) { --m.lanes; });
  with(motion.epochs > 1, [](MotionCase& m) { --m.epochs; });
  with(motion.steps > 1, [](MotionCase& m) { --m.steps; });
  with(motion.resumed_after > 1, [](MotionCase& m) { --m.resumed_after; });
  std::erase_if(all, [](const MotionCase& m) {
    return m.resumed_after >= m.steps * m.epochs || !is_predictable(m);
  });
  return all;
}

}  // namespace

MotionCase random_motion(Random& random) {
  MotionCase motion;
  motion.workers = between(random, 1, 4);
  motion.lanes = motion.workers + between(random, 0, 2);
  motion.steps = between(random, 1, 6);
  motion.epochs = between(random, 1, 6);
  switch (random.below(5)) {
    case 0:
      motion.strategy = pick(random, exchange_names());
      break;
    case 1:
      motion.local_steps = between(random, 2, 4);
      break;
    case 2:
      motion.strategy = "ddpg";
      motion.steps = 1;
      motion.epochs = between(random, 1, 24);
      motion.blocks = between(random, 1, 4);
      motion.servers = between(random, 1, 2);
      motion.delay = pick<int64_t>(random, {0, 1, 4});
      break;
    default:
      motion.strategy = one_in(random, 3) ? "downpour" : "ps";
      motion.servers = between(random, 1, 2);
      motion.delay = motion.strategy == "ps" ? pick<int64_t>(random, {0, 1, 4, -1}) : 0;
      if (motion.servers > 1 && one_in(random, 3)) motion.replicas = 2;
      if (motion.strategy == "downpour" && one_in(random, 3))
        motion.push_every = between(random, 2, 4);
  }
  if (motion.strategy != "ddpg" && motion.local_steps == 1 && one_in(random, 4))
    motion.compress = pick(random, kExactCodecs);
  const int64_t all = motion.steps * motion.epochs;
  if (all > 1 && one_in(random, 2)) motion.resumed_after = between(random, 1, all - 1);
  if (motion.resumed_after > 0 && one_in(random, 2))
    motion.resumed_by = between(random, 1, motion.lanes);
  motion.optimizer = pick(random, rules_for(motion));
  return motion;
}

std::optional<std::string> what_is_wrong(const MotionCase& motion) {
  try {
    return Motion(motion).run();
  } catch (const std::exception& error) {
    return fmt::format("it stops: {}", error.what());
  }
}

std::string to_text(const MotionCase& motion) {
  return fmt::format(
      "optimizer {}\nstrategy {}\ncompress {}\nworkers {}\nservers {}\nreplicas {}\nlanes {}\n"
      "delay {}\npush_every {}\nblocks {}\nlocal_steps {}\nsteps {}\nepochs {}\n"
      "resumed_after {}\nresumed_by {}\n",
      motion.optimizer, motion.strategy, motion.compress, motion.workers, motion.servers,
      motion.replicas, motion.lanes, motion.delay, motion.push_every, motion.blocks,
      motion.local_steps, motion.steps, motion.epochs, motion.resumed_after, motion.resumed_by);
}

MotionCase parse_motion(std::string_view text, std::string_view name) {
  MotionCase motion;
  const std::map<std::string, std::string MotionCase::*> texts = {
      {"optimizer", &MotionCase::optimizer},
      {"strategy", &MotionCase::strategy},
      {"compress", &MotionCase::compress}};
  const std::map<std::string, int64_t MotionCase::*> numbers = {
      {"workers", &MotionCase::workers},
      {"servers", &MotionCase::servers},
      {"lanes", &MotionCase::lanes},
      {"delay", &MotionCase::delay},
      {"replicas", &MotionCase::replicas},
      {"push_every", &MotionCase::push_every},
      {"blocks", &MotionCase::blocks},
      {"local_steps", &MotionCase::local_steps},
      {"steps", &MotionCase::steps},
      {"epochs", &MotionCase::epochs},
      {"resumed_after", &MotionCase::resumed_after},
      {"resumed_by", &MotionCase::resumed_by}};
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> words = split(line, ' ');
    const auto number = numbers.find(words[0]);
    const auto text = texts.find(words[0]);
    require(words.size() == 2 && (text != texts.end() || number != numbers.end()),
            ErrorKind::invalid_argument, "[{}] got the line '{}', expected a key and a value", name,
            line);
    if (text != texts.end())
      motion.*text->second = words[1];
    else
      motion.*number->second = std::stoll(words[1]);
  }
  return motion;
}

MotionCase reduce(MotionCase motion, const std::string& wrong,
                  const std::function<std::optional<std::string>(const MotionCase&)>& find) {
  for (bool again = true; again;) {
    again = false;
    for (const MotionCase& next : simpler(motion)) {
      const std::optional<std::string> found = find(next);
      if (!found || !same_fault(*found, wrong)) continue;
      motion = next;
      again = true;
      break;
    }
  }
  return motion;
}

}  // namespace artel::model_fuzz
