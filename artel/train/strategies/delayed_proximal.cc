#include "artel/train/strategies/delayed_proximal.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/data/tables/column_blocks.h"
#include "artel/predict/linear.h"
#include "artel/ps/delayed_proximal.h"
#include "artel/train/step/workload.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategy.h"
#include "artel/train/trainer_state.h"

namespace artel {
namespace {

// A private folder of this user with an unpredictable name.
std::filesystem::path make_private_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "artel-XXXXXX").string();
  require(::mkdtemp(name.data()) != nullptr, ErrorKind::io, "[{}] cannot be created: {}", name,
          std::strerror(errno));
  return name;
}

constexpr double kUsualFilterShare = 0.5;
constexpr double kSecondsBetweenRests = 10;

// "key cache", "changes", "kkt 0.5", "skip 0.1", or a codec such as "fp16".
ps::FilterOptions filters_of(const std::vector<std::string>& words) {
  ps::FilterOptions filters = {.key_cache = false, .changes = false};
  for (const std::string& word : words) {
    const auto share = [&](std::string_view name) {
      const std::string rest(trim(std::string_view(word).substr(name.size())));
      return rest.empty() ? kUsualFilterShare : std::stod(rest);
    };
    if (word == "key cache")
      filters.key_cache = true;
    else if (word == "changes")
      filters.changes = true;
    else if (word.starts_with("kkt"))
      filters.kkt = share("kkt");
    else if (word.starts_with("skip"))
      filters.random_skip = share("skip");
    else
      filters.compress = comm::make_codec(word)->name();
  }
  return filters;
}

// Throws for networks, data, and losses that this strategy does not support.
const data::SparseRows& sparse_rows(const FitView& fit) {
  require(fit.model.network().kind() == "linear", ErrorKind::invalid_argument,
          "model: got a network with the strategy \"ddpg\", expected the model \"linear\"; try "
          "without model.name and model.layers");
  require(fit.set.sparse() && fit.set.size() > 0, ErrorKind::invalid_argument,
          "data.set: the strategy \"ddpg\" needs sparse samples, such as libsvm files");
  const std::string loss = loss_name(fit.options.loss);
  require(loss == "cross_entropy" || loss == "mse", ErrorKind::invalid_argument,
          "train.loss: got \"{}\" with the strategy \"ddpg\", expected \"cross_entropy\" (logistic "
          "regression) or \"mse\"",
          loss);
  const bool classes = fit.set.layout().target_kind == data::TargetKind::classes;
  require(classes == (loss == "cross_entropy"), ErrorKind::unsupported,
          "train.loss: got \"{}\" with targets that are {}; try {}", loss,
          classes ? "classes" : "values",
          classes ? "data.task = \"values\"" : "train.loss = \"mse\"");
  return *fit.set.sparse();
}

ps::DelayedProximalOptions solver_options(const FitView& fit, int64_t features) {
  const auto& own = fit.options_of<DelayedProximalOptions>();
  ps::DelayedProximalOptions options = {
      .loss = loss_name(fit.options.loss) == "mse" ? "squared" : "logistic",
      .penalty = {.l1 = own.l1, .l2 = own.l2},
      .delay = fit.options_of<DelayOptions>().delay,
      .rate = own.block_rate,
      .damping = own.delay_damping,
      .passes = fit.last_step,
      .tolerance = own.tolerance,
      .order = {},
      .seed = fit.options.seed,
      .filters = filters_of(own.filters),
      .passes_done = fit.step};
  for (const std::string& block : own.block_order) options.order.push_back(std::stoi(block));
  const std::vector<float> weights = linear_weights(fit.parameters, features);
  const bool begun = std::any_of(weights.begin(), weights.end(), [](float w) { return w != 0; });
  if (fit.step > 0 || begun) options.weights = weights;
  return options;
}

// A step is a pass over all samples, which the strategy reads and computes itself.
class Passes final : public Workload {
 public:
  Passes(TrainerState& state, const data::Loader& loader) : s_(state), loader_(loader) {}

  void compile() override {}
  void prepare() override { s_.pending_optimizer.clear(); }  // servers make the updates
  Metrics metrics() const override;
  std::optional<data::Batch> next() override {
    return data::Batch{.epoch = s_.step, .total = loader_.set().size()};
  }
  data::Batch part_of(const Tensor&, const Tensor&) const override {
    fail(ErrorKind::unsupported, "the strategy \"{}\" makes passes over all samples",
         s_.options.strategy);
  }

 private:
  TrainerState& s_;
  const data::Loader& loader_;
};

// Metrics: correct answers and samples.
Metrics Passes::metrics() const {
  const std::vector<Metric> wanted = s_.metrics_for(loader_.layout());
  require(wanted.size() <= 1, ErrorKind::invalid_argument,
          "train.metrics: got {} of them, but the strategy \"{}\" counts only the accuracy",
          wanted.size(), s_.options.strategy);
  for (const Metric& metric : wanted)
    require(metric.name == "accuracy", ErrorKind::unsupported,
            "train.metrics: got \"{}\", but the strategy \"{}\" counts only the accuracy",
            metric.name, s_.options.strategy);
  return Metrics(wanted, {Shape{2}});
}

// The servers have the weights; this worker has all samples of its share, block by block.
class SparseLinear final : public Strategy, public ServedFacet {
 public:
  explicit SparseLinear(const FitView& fit)
      : Strategy(fit, {.collective = false, .stops_together = true, .has_weights = false}),
        rows_(sparse_rows(fit)),
        options_(solver_options(fit, rows_.features())),
        problem_(problem()),
        client_(fit.cluster.membership().world, fit.cluster.size(),
                ps::ShardMap::even(ps::problem_keys(problem_, fit.cluster.size()),
                                   fit.cluster.servers()),
                fit.options.seed),
        solver_(client_, *fit.group(), problem_, options_) {}

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  ServedFacet* served() override { return this; }
  bool stops(const Outcome&, bool) const override { return solver_.done(); }
  bool finish() override {
    take_weights();
    return false;
  }
  void leave() override { client_.leave(); }
  Traffic traffic() const override { return traffic_; }
  ExchangePath path() const override {
    return {.algorithm = "parameter servers",
            .reduction = options_.delay == 0 ? "exact" : "asynchronous"};
  }
  ps::Report server_report() override { return client_.report(); }

 private:
  ps::SparseProblem problem() const;
  bool rests(int64_t pass);
  void take_weights() { set_linear_weights(fit_.parameters, solver_.weights()); }

  const data::SparseRows& rows_;
  ps::DelayedProximalOptions options_;
  ps::SparseProblem problem_;
  ps::Client client_;
  ps::DelayedProximal solver_;
  Traffic traffic_;
  int64_t rest_ = -1;  // the last pass after which nothing was in flight
  Clock::time_point rested_ = Clock::now();
};

ps::SparseProblem SparseLinear::problem() const {
  const auto features = static_cast<uint64_t>(rows_.features());
  const auto& own = fit_.options_of<DelayedProximalOptions>();
  const std::vector<uint64_t> cuts = data::balanced_cuts(rows_, static_cast<int>(own.blocks));
  const bool logistic = options_.loss == "logistic";
  const auto samples = [this, cuts, features, logistic](int64_t first, int64_t last) {
    const std::filesystem::path folder = make_private_folder();
    const auto blocks = std::make_shared<const data::ColumnBlocks>(rows_, first, last, cuts,
                                                                   folder / "columns", features);
    std::filesystem::remove_all(folder);  // the file lives as long as it is mapped
    ps::SparseSamples samples = {.block = [blocks](int block) -> ps::SparseBlock {
      const data::ColumnBlock& part = blocks->block(block);
      return {part.features, part.starts, part.rows, part.values};
    }};
    for (const float target : blocks->targets())
      samples.targets.push_back(!logistic ? target : target > 0 ? 1.0f : -1.0f);
    return samples;
  };
  return {.cuts = cuts, .constant = features, .size = rows_.size(), .samples = samples};
}

// Worker 0 gathers all weights only periodically, because that interrupts the flow of blocks.
bool SparseLinear::rests(int64_t pass) {
  if (fit_.cluster.rank() > 0) return false;
  const bool due = fit_.judges || (fit_.save_every > 0 ? pass % fit_.save_every == 0
                                                       : seconds_between(rested_, Clock::now()) >=
                                                             kSecondsBetweenRests);
  if (!due) return false;
  rest_ = pass;
  rested_ = Clock::now();
  return true;
}

Strategy::Outcome SparseLinear::step(const data::Batch& batch, const StepOptions& options) {
  const ps::PassReport report =
      solver_.next(fit_.stop, [this](int64_t pass) { return rests(pass); });
  traits_.has_weights = fit_.cluster.rank() == 0 && (rest_ == options.number || solver_.done());
  if (traits_.has_weights) take_weights();
  traffic_ = {.waited_seconds = report.seconds_waited};
  const auto samples = static_cast<double>(std::max<int64_t>(1, report.samples));
  const auto correct = static_cast<double>(report.correct);
  // The solver counts half of the squared errors.
  const double loss = options_.loss == "squared" ? 2 * report.loss : report.loss;
  Outcome outcome = {.loss = loss / samples, .metrics = {correct, samples}, .learning_rate = 0};
  outcome.together = {.samples = batch.total, .loss = loss, .metrics = outcome.metrics};
  if (fit_.cluster.rank() == 0)
    outcome.measures = {{"objective", report.objective},
                        {"nonzeros", static_cast<double>(report.nonzeros)}};
  if (solver_.settled()) outcome.stops_by = "tolerance";
  return outcome;
}

}  // namespace

void DelayedProximalOptions::visit(KeyVisitor& field) {
  field({"train.l1", "With `ddpg`: weight of the sum of absolute weights, without the bias."}, l1);
  field({"train.l2", "With `ddpg`: weight of half the sum of squared weights, without the bias."},
        l2);
  field({"train.tolerance",
         "With `ddpg`: stop when a pass changes the loss by less than this fraction. 0: never."},
        tolerance);
  field({.name = "cluster.blocks",
         .help = "With `ddpg`: number of blocks of features.",
         .least = 1,
         .most = 1e6},
        blocks);
  field({"cluster.block_order",
         "With `ddpg`: block numbers in the order of visits, as texts. Empty: random order."},
        block_order);
  field({"cluster.block_rate", "With `ddpg`: fraction of the safe step size, without a delay."},
        block_rate);
  field({"cluster.delay_damping",
         "With `ddpg`: the step is divided by 1 + this times (delay - 1)^2 / blocks."},
        delay_damping);
  field({"cluster.filters",
         "With `ddpg`: filters that make messages smaller: `key cache`, `changes` (servers send "
         "changed "
         "weights only), `kkt SHARE`, `skip SHARE`, or a codec such as `fp16`."},
        filters);
}

StrategyKind ddpg_kind() {
  return {.title = "Delayed proximal gradient",
          .help =
              "Sparse linear models: servers take a proximal step for one block of features after "
              "another.",
          .names = {"ddpg"},
          .needs_servers = true,
          .takes_batches = false,
          .sparse_data = true,
          .model = "linear",
          .visit_keys = keys_of<DelayedProximalOptions, DelayOptions>(),
          .notes = {{"train.save_every", "With `ddpg`: passes; 0: one every ten seconds."}},
          .outlives_workers =
              [](const StrategyOptions& options) { return options.of<DelayOptions>().delay != 0; },
          .elastic = false,
          .adjust_fit = [](FitOptions& options,
                           const data::Dataset& set) { options.batch_size = set.size(); },
          .workload = [](TrainerState& state, data::Loader& loader,
                         const FitOptions&) { return std::make_unique<Passes>(state, loader); },
          .make = [](const FitView& fit) { return std::make_unique<SparseLinear>(fit); }};
}

}  // namespace artel
