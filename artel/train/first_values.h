// What the parameters of a network begin with, before anybody needs them: random numbers, or
// tensors of a file. A worker that keeps only a part of the network makes and reads only that part.
#pragma once

#include <map>
#include <string>

#include "artel/exec/parameters.h"
#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

// Tensors of a file that are used one after another. Each takes memory only while it is used.
class PendingTensors {
 public:
  PendingTensors() = default;
  explicit PendingTensors(NamedTensors tensors);

  void set(const std::string& name, Tensor tensor) { tensors_[name] = std::move(tensor); }
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  // Its values in some layout, valid until the next call; none if there is no such tensor, or no
  // longer. Throws if it has another shape.
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

  // Whether they are still to be made.
  bool pending() const { return pending_; }
  // From now on a parameter begins with this tensor, which fits it.
  void load(const std::string& name, Tensor tensor) { loaded_.set(name, std::move(tensor)); }

  // Sets all parameters; nothing is pending any more.
  void fill(int threads, Parameters& parameters);
  // The same for those who have set them one by one.
  void drop() { *this = {}; }

  // One by one: the values that were loaded, if any were (PendingTensors::take),
  std::span<const float> take_loaded(const std::string& name, const Shape& shape,
                                     const Layout& layout) {
    return loaded_.take(name, shape, layout);
  }
  // or random numbers, made in place.
  void make(const ParameterEntry& entry, Parameters& parameters) const;
  // Either of them.
  void set(const ParameterEntry& entry, Parameters& parameters);

 private:
  bool pending_ = false;
  uint64_t seed_ = 0;
  std::map<std::string, nn::Initialiser> initialisers_;
  PendingTensors loaded_;
};

}  // namespace artel
