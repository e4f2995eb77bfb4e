#include "tests/model_fuzz/motion_case.h"

#include <fmt/format.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/nn/layers.h"
#include "artel/train/exchange.h"
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

// Rules that move a weight by the same amount in each step, so that it does not matter in which
// order pushes arrive.
const std::vector<std::string> kSteady = {"adam", "adamw", "sgd"};
// Downpour trains with Adagrad instead of SGD.
const std::vector<std::string> kOfDownpour = {"adam", "adamw"};
const std::vector<std::string> kAll = {"sgd",  "momentum", "nesterov", "adagrad", "rmsprop",
                                       "adam", "adamw",    "lars",     "lamb"};

const std::vector<std::string>& rules_for(const MotionCase& motion) {
  if (motion.strategy == "downpour") return kOfDownpour;
  return motion.is_asynchronous() ? kSteady : kAll;
}

optim::OptimizerConfig optimizer_of(const MotionCase& motion) {
  return optim::optimizer_from_options(
      {{"name", motion.optimizer}, {"lr", fmt::format("{}", kRate)}, {"weight_decay", "0"}});
}

// The weights after all steps, in double precision.
std::map<std::string, reference::Array> expected_weights(const MotionCase& motion) {
  const auto all = [](double value) {
    return std::map<std::string, reference::Array>{
        {"0.weight", {{1, kInputs}, std::vector<double>(kInputs, value)}},
        {"0.bias", {{1}, {value}}}};
  };
  std::map<std::string, reference::Array> weights = all(kInitial);
  reference::Optimizer optimizer(optimizer_of(motion));
  for (int64_t step = 1; step <= motion.steps * motion.epochs; ++step)
    optimizer.update(weights, all(1), step, kRate);
  return weights;
}

class Motion {
 public:
  explicit Motion(const MotionCase& motion) : motion_(motion) {}

  std::optional<std::string> run() {
    const int64_t all = motion_.steps * motion_.epochs;
    if (motion_.resumed_after > 0) train_until(motion_.resumed_after);
    train_until(all);
    for (const auto& [name, expected] : expected_weights(motion_)) {
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
  TrainerOptions options() const {
    return {.optimizer = optimizer_of(motion_),
            .loss = "l1",
            .threads = 1,
            .lanes = static_cast<int>(motion_.lanes),
            .strategy = motion_.strategy,
            .strategy_options = {
                DelayOptions{motion_.delay < 0 ? std::nullopt : std::optional(motion_.delay)},
                LocalStepsOptions{.local_steps = motion_.local_steps}}};
  }

  void train_until(int64_t steps) {
    const int64_t batch = motion_.lanes * kSamplesOfALane, samples = batch * motion_.steps;
    Tensor x({samples, kInputs}), y({samples, 1});
    std::ranges::fill(x.values<float>(), 1.0f);
    std::ranges::fill(y.values<float>(), -1e4f);
    const auto train = [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, Model(nn::sequential({nn::dense(1)})), options());
      trainer.build({DType::f32, {kInputs}});
      if (rank == 0) {
        NamedTensors ones = trainer.weights();
        for (NamedTensor& weight : ones) {
          weight.tensor = weight.tensor.clone();
          std::ranges::fill(weight.tensor.values<float>(), static_cast<float>(kInitial));
        }
        trainer.load_weights(ones);
      }
      trainer.fit(x, y,
                  {.batch_size = batch,
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
    on_workers(static_cast<int>(motion_.workers), train, static_cast<int>(motion_.servers));
  }

  const MotionCase& motion_;
  const TemporaryFolder folder_;
  std::map<std::string, std::vector<float>> weights_;
};

std::vector<MotionCase> simpler(const MotionCase& motion) {
  std::vector<MotionCase> all;
  const auto with = [&](bool possible, const auto& change) {
    if (possible) change(all.emplace_back(motion));
  };
  with(motion.resumed_after > 0, [](MotionCase& m) { m.resumed_after = 0; });
  with(motion.optimizer != rules_for(motion)[0],
       [&](MotionCase& m) { m.optimizer = rules_for(motion)[0]; });
  with(motion.local_steps > 1, [](MotionCase& m) { m.local_steps = 1; });
  with(motion.servers > 1, [](MotionCase& m) { --m.servers; });
  with(motion.workers > 1, [](MotionCase& m) { --m.workers; });
  with(motion.lanes > motion.workers, [](MotionCase& m) { --m.lanes; });
  with(motion.epochs > 1, [](MotionCase& m) { --m.epochs; });
  with(motion.steps > 1, [](MotionCase& m) { --m.steps; });
  with(motion.resumed_after > 1, [](MotionCase& m) { --m.resumed_after; });
  std::erase_if(all, [](const MotionCase& m) { return m.resumed_after >= m.steps * m.epochs; });
  return all;
}

}  // namespace

MotionCase random_motion(Random& random) {
  MotionCase motion;
  motion.workers = between(random, 1, 4);
  motion.lanes = motion.workers + between(random, 0, 2);
  motion.steps = between(random, 1, 6);
  motion.epochs = between(random, 1, 6);
  switch (random.below(4)) {
    case 0:
      motion.strategy = pick(random, exchange_names());
      break;
    case 1:
      motion.local_steps = between(random, 2, 4);
      break;
    default:
      motion.strategy = one_in(random, 3) ? "downpour" : "ps";
      motion.servers = between(random, 1, 2);
      motion.delay = motion.strategy == "ps" ? pick<int64_t>(random, {0, 1, 4, -1}) : 0;
  }
  motion.optimizer = pick(random, rules_for(motion));
  const int64_t all = motion.steps * motion.epochs;
  if (all > 1 && one_in(random, 2)) motion.resumed_after = between(random, 1, all - 1);
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
      "optimizer {}\nstrategy {}\nworkers {}\nservers {}\nlanes {}\ndelay {}\nlocal_steps {}\n"
      "steps {}\nepochs {}\nresumed_after {}\n",
      motion.optimizer, motion.strategy, motion.workers, motion.servers, motion.lanes, motion.delay,
      motion.local_steps, motion.steps, motion.epochs, motion.resumed_after);
}

MotionCase parse_motion(std::string_view text, std::string_view name) {
  MotionCase motion;
  const std::map<std::string, int64_t MotionCase::*> numbers = {
      {"workers", &MotionCase::workers},
      {"servers", &MotionCase::servers},
      {"lanes", &MotionCase::lanes},
      {"delay", &MotionCase::delay},
      {"local_steps", &MotionCase::local_steps},
      {"steps", &MotionCase::steps},
      {"epochs", &MotionCase::epochs},
      {"resumed_after", &MotionCase::resumed_after}};
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> words = split(line, ' ');
    const auto number = numbers.find(words[0]);
    const bool known = words.size() == 2 && (words[0] == "optimizer" || words[0] == "strategy" ||
                                             number != numbers.end());
    require(known, ErrorKind::invalid_argument,
            "[{}] got the line '{}', expected a key and a value", name, line);
    if (words[0] == "optimizer")
      motion.optimizer = words[1];
    else if (words[0] == "strategy")
      motion.strategy = words[1];
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
