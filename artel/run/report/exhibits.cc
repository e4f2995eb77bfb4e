#include "artel/run/report/exhibits.h"

#include "artel/base/log.h"
#include "artel/run/report/class_report.h"
#include "artel/run/report/mistakes.h"

namespace artel {
namespace {

// As TensorBoard shows text that is no Markdown.
std::string verbatim(const std::string& text) { return "~~~~\n" + text + "\n~~~~\n"; }

observe::PngPicture png_of(const data::Picture& picture) {
  return {.width = picture.width,
          .height = picture.height,
          .channels = static_cast<int>(picture.channels),
          .bytes = data::encode_png(picture)};
}

// Writes histograms of the trained parameters, without running statistics.
void write_histograms(observe::EventFileWriter& events, int64_t step,
                      const Parameters& parameters) {
  for (const ParameterEntry& entry : parameters.entries()) {
    if (entry.is_state) continue;
    const observe::Histogram histogram = observe::histogram_of(parameters.values(entry));
    if (histogram.count > 0) events.write(step, "weights/" + entry.name, histogram);
  }
}

}  // namespace

bool is_exhibited(int64_t epoch) {
  constexpr int64_t kAll = 50;
  int64_t every = 1;
  while (every * kAll < epoch) every *= 2;
  return epoch % every == 0;
}

Exhibits::Exhibits(const RunConfig& config, const RunData& data, data::DatasetPtr judged,
                   const Model& model, Trainer& trainer, int threads)
    : config_(config),
      data_(data),
      judged_(std::move(judged)),
      model_(model),
      trainer_(trainer),
      threads_(threads),
      everything_(config.observe.tensorboard == "all"),
      texts_(config, judged_->size() > 0 ? *judged_ : *data.train) {}

int64_t Exhibits::mistakes() const {
  return are_pictures(data_.layout()) ? config_.observe.mistakes : 0;
}

void Exhibits::begin(const RunFolder& folder, int64_t step, observe::MetricsWriter& metrics) const {
  texts_.begin(folder.texts(), step);
  if (everything_) metrics.events().write_text(step, "configuration", verbatim(to_toml(config_)));
}

void Exhibits::after_epoch(const RunFolder& folder, const TrainingState& state,
                           observe::MetricsWriter& metrics) {
  if (!is_exhibited(state.epoch) && state.step < state.steps) return;
  observe::EventFileWriter& events = metrics.events();
  if (state.tested) save_mistakes(folder, state, events);
  const MetricValue* const confusion = find_metric(state.test_metrics, "confusion matrix");
  if (everything_ && state.tested && confusion)
    events.write(state.step, "confusion matrix", png_of(confusion_picture(*confusion)));
  if (!state.has_weights && (everything_ || texts_.wanted()) && !std::exchange(warned_, true))
    log(LogLevel::warning,
        "after step {}, which is not followed by a test, worker 0 has only a part of the network: "
        "it writes neither histograms nor texts; try a test part, or observe.tensorboard = "
        "\"scalars\" and observe.sample_tokens = 0",
        state.step);
  if (!state.has_weights) return;
  if (everything_) write_histograms(events, state.step, trainer_.parameters());
  if (texts_.wanted()) write_text(folder, state, events);
}

void Exhibits::finish(const RunFolder& folder, const FitResult& result,
                      observe::MetricsWriter& metrics) {
  if (!result.epochs.empty() && result.epochs.back().tested)
    save_mistakes(folder, result.epochs.back(), metrics.events());
}

void Exhibits::save_mistakes(const RunFolder& folder, const TrainingState& state,
                             observe::EventFileWriter& events) {
  if (mistakes() == 0 || saved_ == std::pair(state.step, state.test_mistakes)) return;
  saved_ = {state.step, state.test_mistakes};
  const std::string part(to_string(data_.judge()));
  const PictureSheet sheet = artel::save_mistakes(folder, state.test_mistakes,
                                                  {.set = *judged_,
                                                   .augment = data_.augment,
                                                   .part = part,
                                                   .size = data_.at(data_.judge())->size()},
                                                  state.step);
  if (everything_ && sheet.tile_width > 0)
    events.write(state.step, part + "/mistakes", png_of(sheet.picture));
}

void Exhibits::write_text(const RunFolder& folder, const TrainingState& state,
                          observe::EventFileWriter& events) {
  const std::optional<TextSamples::Text> text =
      texts_.write(model_, trainer_.parameters(), threads_);
  if (!text) return;
  texts_.append(folder.texts(), state.step, state.epoch, *text);
  if (everything_) events.write_text(state.step, "texts", verbatim(text->prompt + text->text));
}

}  // namespace artel
