// A layer is a recipe: given a graph and an input value it adds nodes and parameters and returns
// the output. Layers compose; nothing is computed here.
//
// A Layer is a value, cheap to copy, and can be built any number of times (for training, for
// evaluation, for another batch size): the same names and shapes come out each time.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/random.h"
#include "artel/graph/graph.h"

namespace artel::nn {

// Fills a new parameter. The random stream is a function of the seed and the parameter's name.
using Initialiser = std::function<void(Random&, const Shape&, std::span<float>)>;

// A graph under construction.
class Build {
 public:
  // Whether parameters of a full name are trained.
  using Trained = std::function<bool(const std::string&)>;

  // `trained` is absent where all are.
  explicit Build(Graph& graph, bool training, Value places = {}, Trained trained = {})
      : graph_(graph), training_(training), places_(places), trained_(std::move(trained)) {}

  Graph& graph() { return graph_; }
  // Whether dropout drops and batch norm uses the statistics of the batch.
  bool training() const { return training_; }
  // Whether the parameter of this name, relative to the current scope, is trained.
  bool trains(std::string_view name) const {
    return training_ && (!trained_ || trained_(graph_.scoped(name)));
  }
  // Where in the text the tokens of the input stand, i32 [tokens], when a text is read piece by
  // piece and what attention needs of earlier pieces is kept in states; else empty.
  Value places() const { return places_; }

  Value parameter(std::string_view name, Shape shape, Initialiser initialiser);
  Value state(std::string_view name, Shape shape, float initial);
  // By full name.
  const std::map<std::string, Initialiser>& initialisers() const { return initialisers_; }

 private:
  Graph& graph_;
  bool training_;
  Value places_;
  Trained trained_;
  std::map<std::string, Initialiser> initialisers_;
};

class Layer {
 public:
  using Function = std::function<Value(Build&, Value)>;

  Layer(std::string kind, Function build) : kind_(std::move(kind)), build_(std::move(build)) {}

  // "dense", "conv", ...: for summaries.
  const std::string& kind() const { return kind_; }
  Value operator()(Build& build, Value x) const { return build_(build, x); }

 private:
  std::string kind_;
  Function build_;
};

// The initial value of a parameter or state of that name: a function of (seed, name) alone.
Tensor initial_value(uint64_t seed, const std::string& name, const Shape& shape,
                     const Initialiser& initialiser);

}  // namespace artel::nn
