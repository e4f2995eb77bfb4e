#include "tests/model_fuzz/training.h"

#include <algorithm>

#include "artel/exec/libraries.h"
#include "artel/predict/batches.h"

namespace artel::model_fuzz {

Training::Training(const NetworkCase& network, const Setting& setting)
    : network_(network), setting_(setting) {
  choices_.tune = setting.tune;
  choices_.device = setting.device;
  choices_.exact_convolutions = network.exact_convolutions;
  ModelGraph graph = inference_graph(network.model(), batch_of(network.x(), 1));
  const Program program(std::move(graph.graph), {}, choices_);
  parameters_ = Parameters(program.parameter_entries());
  for (const ParameterEntry& entry : parameters_.entries())
    parameters_.set(entry.name, nn::initial_value(network.seed, entry.name, entry.shape,
                                                  graph.initialisers.at(entry.name)));
  stepper_ = std::make_unique<Stepper>(
      network.model(), network.x(), network.y(), network.training_loss(),
      optim::optimizer_from_options(network.optimizer), parameters_, choices_,
      StepperOptions{.threads = setting.threads,
                     .lanes = static_cast<int>(network.lanes),
                     .seed = network.seed,
                     .memory_limit = setting.memory_limit,
                     .lanes_together = setting.lanes_together,
                     .check_memory = setting.check_memory,
                     .trained = [&](const std::string& name) { return network_.trained(name); },
                     .metrics = metrics_by_name(network.metrics)});
}

Training::Step Training::step() {
  const int64_t number = ++steps_, samples = network_.samples_of(number);
  Memory total;
  stepper_->compute(
      {.range = {0, static_cast<int>(network_.lanes)}, .batch = samples, .step = number},
      network_.inputs(number), network_.targets(number),
      [&](int, const std::vector<Memory>& partials) { total = partials.front(); });
  Step result;
  const StepStatistics statistics = stepper_->read_statistics(total.floats(), number);
  result.loss = statistics.loss();
  for (const SummedRegion::Part& part : stepper_->region().parts()) {
    if (part.is_state) continue;
    reference::Array& gradient = result.gradients[part.name];
    gradient = plain(parameters_.entry(part.name), total.address() + part.offset);
    for (double& value : gradient.data) value *= statistics.gradient_scale();
  }
  for (const Metrics::Part& part : stepper_->region().metrics().parts()) {
    const auto first = statistics.sums.begin() + static_cast<long>(part.offset);
    result.metrics[part.output] = {part.shape, {first, first + static_cast<long>(part.size)}};
  }
  Update& update = stepper_->update();
  Update::Options options = {.step = number,
                             .learning_rate = static_cast<float>(
                                 optim::optimizer_from_options(network_.optimizer).learning_rate),
                             .gradient_scale = statistics.gradient_scale(),
                             .lanes = static_cast<int>(network_.lanes)};
  if (update.clips()) options.gradient_scale *= update.clip_scale(total, options.gradient_scale);
  update.apply(total, options);
  return result;
}

Arrays Training::evaluate() {
  const Tensor x = network_.inputs(1), y = network_.targets(1);
  const Program program(
      evaluation_graph(network_.model(), batch_of(network_.x(), x.shape()[0]),
                       batch_of(network_.y(), y.shape()[0]), loss_by_name(network_.loss),
                       metrics_by_name(network_.metrics))
          .graph,
      {.threads = setting_.threads}, choices_);
  Frame frame(program, parameters_);
  frame.set_input("x", x);
  frame.set_input("y", y);
  ThreadPool pool(setting_.threads, limit_library_threads);
  program.run(frame, pool,
              {.context = {network_.seed, 0, 0}, .check_memory = setting_.check_memory});
  Arrays outputs;
  for (const auto& [name, id] : program.graph().outputs())
    outputs[name] = reference::from_tensor(frame.output(name));
  return outputs;
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
