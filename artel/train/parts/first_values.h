// Deferred initial values of parameters: random numbers, or tensors of a file. A worker that holds
// only a part of the network creates and reads only that part.
#pragma once

#include <map>
#include <string>

#include "artel/exec/parameters.h"
#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

// Tensors of a file that are used one after another. Each occupies memory only while in use.
class PendingTensors {
 public:
  PendingTensors() = default;
  explicit PendingTensors(NamedTensors tensors);

  void set(const std::string& name, Tensor tensor) { tensors_[name] = std::move(tensor); }
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  // The values of a tensor in the given layout, valid until the next call. Empty if it does not
  // exist or was already taken. Throws if the shape differs.
  std::span<const float> take(const std::string& name, const Shape& shape, const Layout& layout);

 private:
  std::map<std::string, Tensor> tensors_;
  Tensor taken_;
};

class FirstValues {
 public:
  FirstValues() = default;
  FirstValues(uint64_t seed, std::map<std::string, nn::Initialiser> initialisers)
      : pending_(true), seed_(seed), initialisers_(std::move(initialisers)) {}

  // True if values are still pending.
  bool pending() const { return pending_; }
  // Sets the initial value of a parameter, which must have the same shape.
  void load(const std::string& name, Tensor tensor) { loaded_.set(name, std::move(tensor)); }

  // Sets all parameters and clears the pending state.
  void fill(int threads, Parameters& parameters);
  // Clears the pending state after the parameters have been set one by one.
  void drop() { *this = {}; }

  // Takes the loaded values of a parameter, if any (PendingTensors::take).
  std::span<const float> take_loaded(const std::string& name, const Shape& shape,
                                     const Layout& layout) {
    return loaded_.take(name, shape, layout);
  }
  // Creates the random values of a parameter in place.
  void make(const ParameterEntry& entry, Parameters& parameters) const;
  // Sets a parameter to its loaded or random values.
  void set(const ParameterEntry& entry, Parameters& parameters);

 private:
  bool pending_ = false;
  uint64_t seed_ = 0;
  std::map<std::string, nn::Initialiser> initialisers_;
  PendingTensors loaded_;
};

}  // namespace artel
