#include "artel/train/loop/epoch_judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/nn/model.h"
#include "artel/predict/batches.h"
#include "artel/train/trainer_state.h"

namespace artel {

namespace {

// Throws for a criterion that is not measured. Names only metrics that the network can measure.
[[noreturn]] void fail_unmeasured(const std::string& best_by, const Metrics& measured,
                                  const std::vector<std::string>& measurable) {
  std::vector<std::string> names = {"loss"}, more;
  for (const Metrics::Part& part : measured.parts())
    if (part.metric.value) names.push_back(part.metric.name);
  for (const std::string& name : measurable)
    if (std::ranges::count(names, name) == 0) more.push_back(name);
  std::string advice = did_you_mean(best_by, names);
  if (std::ranges::count(more, best_by) > 0)
    advice = fmt::format("; add \"{}\" to train.metrics", best_by);
  else if (!more.empty())
    advice += "; train.metrics adds " + join(more, ", ");
  fail(ErrorKind::invalid_argument,
       "best_by: got \"{}\", expected a metric of one number that this run measures: {}{}", best_by,
       join(names, ", "), advice);
}

}  // namespace

EpochJudge::EpochJudge(TrainerState& state, const FitOptions& options, const Metrics& measured,
                       const data::SampleLayout& layout)
    : s_(state), options_(options) {
  const bool counts_accuracy = measured.find("accuracy") != nullptr;
  if (options.best_by != "loss") {
    const Metric* const metric = measured.find(options.best_by);
    if (!metric || !metric->value) {
      const Graph network = inference_graph(s_.model, batch_of(s_.sample, 2)).graph;
      fail_unmeasured(options.best_by, measured,
                      metrics_for(network.type(network.output_id("prediction")),
                                  batch_of({layout.target_type(), layout.target}, 2)));
    }
    less_is_better_ = metric->less_is_better;
  }
  require(options.target_accuracy == 0 || counts_accuracy, ErrorKind::invalid_argument,
          "target_accuracy: got {}, but the accuracy is not measured; try train.metrics = "
          "[\"accuracy\"] for data with classes, or leave it out",
          options.target_accuracy);
  if (const auto* plateau = std::get_if<optim::Plateau>(&s_.options.schedule.shape))
    require(!plateau->maximize || counts_accuracy, ErrorKind::invalid_argument,
            "[schedule plateau] maximize: got true, but there is no accuracy to watch; try false, "
            "or train.metrics = [\"accuracy\"] for data with classes");
  restore();
}

void EpochJudge::restore() {
  if (const auto* plateau = std::get_if<optim::Plateau>(&s_.options.schedule.shape))
    plateau_.emplace(*plateau, s_.plateau);
}

// The value named by `best_by`.
double EpochJudge::watched(const TrainingState& now) const {
  if (options_.best_by == "loss") return now.tested ? now.test_loss : now.loss;
  const MetricValue* const metric =
      find_metric(now.tested ? now.test_metrics : now.metrics, options_.best_by);
  return metric ? metric->value : std::numeric_limits<double>::quiet_NaN();
}

bool EpochJudge::improves_best(const TrainingState& now) {
  if (s_.best && s_.best->by != options_.best_by) s_.best.reset();  // a resumed run chooses anew
  const double value = watched(now);
  const bool best =
      std::isfinite(value) &&
      (!s_.best || (less_is_better_ ? value < s_.best->value : value > s_.best->value));
  if (best) s_.best = {options_.best_by, value, now.epoch, s_.step};
  return best;
}

EpochJudge::Verdict EpochJudge::judge(const TrainingState& now, double loss) {
  Verdict verdict;
  if (now.tested && options_.target_accuracy > 0 && now.test_accuracy >= options_.target_accuracy)
    verdict.reasons.emplace_back("target accuracy");
  verdict.best = improves_best(now);
  s_.bad_epochs = verdict.best ? 0 : s_.bad_epochs + 1;
  if (options_.patience > 0 && s_.bad_epochs >= options_.patience)
    verdict.reasons.emplace_back("patience");
  if (plateau_) {
    const bool maximize = std::get<optim::Plateau>(s_.options.schedule.shape).maximize;
    plateau_->observe(!maximize ? loss : now.tested ? now.test_accuracy : now.accuracy);
    s_.plateau = plateau_->state();
  }
  return verdict;
}

}  // namespace artel
