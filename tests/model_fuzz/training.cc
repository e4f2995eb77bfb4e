#include "tests/model_fuzz/training.h"

#include <algorithm>

#include "artel/predict/batches.h"

namespace artel::model_fuzz {

Training::Training(const NetworkCase& network, const Setting& setting) : network_(network) {
  choices_.tune = setting.tune;
  choices_.exact_convolutions = network.exact_convolutions;
  ModelGraph graph = inference_graph(network.model(), batch_of(network.x(), 1));
  const Program program(std::move(graph.graph), {}, choices_);
  parameters_ = Parameters(program.parameter_entries());
  for (const ParameterEntry& entry : parameters_.entries())
    parameters_.set(entry.name, nn::initial_value(network.seed, entry.name, entry.shape,
                                                  graph.initialisers.at(entry.name)));
  stepper_ = std::make_unique<Stepper>(network.model(), network.x(), network.y(),
                                       loss_by_name(network.loss, network.label_smoothing),
                                       optim::optimizer_from_options(network.optimizer),
                                       parameters_, choices_,
                                       StepperOptions{.threads = setting.threads,
                                                      .lanes = static_cast<int>(network.lanes),
                                                      .seed = network.seed,
                                                      .memory_limit = setting.memory_limit,
                                                      .check_memory = setting.check_memory});
}

Training::Step Training::step() {
  const int64_t number = ++steps_;
  const std::byte* total = nullptr;
  stepper_->compute(
      {.range = {0, static_cast<int>(network_.lanes)}, .batch = network_.batch, .step = number},
      network_.inputs(number), network_.targets(number),
      [&](int, const std::vector<std::byte*>& partials) { total = partials.front(); });
  Step result;
  for (const SummedRegion::Part& part : stepper_->region().parts())
    if (!part.is_state)
      result.gradients[part.name] = plain(parameters_.entry(part.name), total + part.offset);
  result.loss = stepper_->read_statistics(total, number).loss;
  Update& update = stepper_->update();
  const Update::Options options = {
      .step = number,
      .learning_rate =
          static_cast<float>(optim::optimizer_from_options(network_.optimizer).learning_rate),
      .gradient_scale = update.clips() ? update.clip_scale(total) : 1,
      .lanes = static_cast<int>(network_.lanes)};
  for (const Bucket& bucket : stepper_->buckets(network_.batch))
    update.apply(bucket, total, options);
  return result;
}

reference::Array Training::plain(const ParameterEntry& entry, const std::byte* memory) const {
  Tensor tensor(entry.shape);
  ThreadPool here(1);
  convert_layout(here, entry.shape, DType::f32, memory, entry.layout, tensor.raw(),
                 Layout::row_major());
  return reference::from_tensor(tensor);
}

Arrays Training::parameters() const {
  Arrays all;
  for (const ParameterEntry& entry : parameters_.entries())
    all[entry.name] = reference::from_tensor(parameters_.get(entry.name));
  return all;
}

std::vector<float> Training::bits() const {
  std::vector<float> all;
  for (const ParameterEntry& entry : parameters_.entries()) {
    const Tensor tensor = parameters_.get(entry.name);
    all.insert(all.end(), tensor.values<float>().begin(), tensor.values<float>().end());
  }
  return all;
}

size_t Training::activation_bytes() {
  const int64_t lanes = network_.lanes;
  return stepper_->program((network_.batch + lanes - 1) / lanes).plan().activation_bytes;
}

}  // namespace artel::model_fuzz
