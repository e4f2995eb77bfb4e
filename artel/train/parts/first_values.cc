#include "artel/train/parts/first_values.h"

#include <algorithm>
#include <utility>

#include "artel/base/error.h"
#include "artel/predict/initialise.h"

namespace artel {

PendingTensors::PendingTensors(NamedTensors tensors) {
  for (NamedTensor& each : tensors) set(each.name, std::move(each.tensor));
}

std::span<const float> PendingTensors::take(const std::string& name, const Shape& shape,
                                            const Layout& layout) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return {};
  taken_ = std::move(found->second);
  tensors_.erase(found);
  require(taken_.shape() == shape, ErrorKind::corrupt, "[{}] got the shape {}, expected {}", name,
          to_string(taken_.shape()), to_string(shape));
  if (taken_.dtype() != DType::f32) taken_ = taken_.to(DType::f32);
  if (!same_memory(shape, layout, Layout::row_major())) {
    Tensor converted(shape);
    ThreadPool here(1);
    convert_layout(here, shape, DType::f32, taken_.raw(), Layout::row_major(), converted.raw(),
                   layout);
    taken_ = std::move(converted);
  }
  return std::as_const(taken_).values<float>();
}

void FirstValues::fill(int threads, Parameters& parameters) {
  if (!pending_) return;
  std::map<std::string, nn::Initialiser> made = initialisers_;
  std::erase_if(made, [&](const auto& each) { return loaded_.contains(each.first); });
  ThreadPool pool(threads);
  initialise(pool, seed_, made, parameters);
  for (const ParameterEntry& entry : parameters.entries())
    if (loaded_.contains(entry.name)) set(entry, parameters);
  drop();
}

void FirstValues::set(const ParameterEntry& entry, Parameters& parameters) {
  if (!loaded_.contains(entry.name)) return make(entry, parameters);
  const auto values = take_loaded(entry.name, entry.shape, entry.layout);
  std::copy(values.begin(), values.end(), parameters.values(entry).begin());
}

void FirstValues::make(const ParameterEntry& entry, Parameters& parameters) const {
  const auto found = initialisers_.find(entry.name);
  if (found == initialisers_.end()) return;
  ThreadPool here(1);
  initialise(here, seed_, {*found}, parameters);
}

}  // namespace artel
