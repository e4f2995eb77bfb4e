// A layer is a function that adds nodes and parameters to a graph and returns the output value.
// Layers compose; nothing is computed here.
//
//   // Adds a learnt shift to each feature.
//   const artel::nn::Layer shift("shift", [](artel::nn::Build& build, artel::Value x) {
//     return artel::add(x, build.parameter("shift", {x.shape().back()}, artel::nn::constant(0)));
//   });
//   const artel::Model network = artel::nn::sequential({artel::nn::dense(32), shift});
//
// A Layer is a value, cheap to copy, and can be built any number of times (for training,
// evaluation, or another batch size), with the same names and shapes each time.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artel/base/random.h"
#include "artel/graph/graph.h"

namespace artel::nn {

// Fills a new parameter. The random stream is a function of the seed and the parameter's name.
using Initialiser = std::function<void(Random&, const Shape&, std::span<float>)>;

// A graph under construction.
class Build {
 public:
  // True if the parameter with this full name is trained.
  using Trained = std::function<bool(const std::string&)>;

  // `trained` is absent if all parameters are trained.
  explicit Build(Graph& graph, bool training, Value places = {}, Trained trained = {})
      : graph_(graph), training_(training), places_(places), trained_(std::move(trained)) {}

  Graph& graph() { return graph_; }
  // True if dropout is active and batch norm uses the statistics of the batch.
  bool training() const { return training_; }
  // True if the parameter of this name, relative to the current scope, is trained.
  bool trains(std::string_view name) const {
    return training_ && (!trained_ || trained_(graph_.scoped(name)));
  }
  // The positions of the input's tokens in the text, i32 [tokens], if a text is read piece by piece
  // and states keep attention's keys and values of earlier pieces. Otherwise empty.
  Value places() const { return places_; }
  // Throws an Error of kind unsupported during incremental decoding, for a layer whose results
  // depend on earlier pieces.
  void require_whole_text(std::string_view layer);

  // Stores a value under a name for later layers (nn/named_values.h). Throws for a duplicate name.
  void keep(const std::string& name, Value value);
  // Sets an input of the network; the first is named "x". Inputs are also kept values.
  void set_input(const std::string& name, Value value) { kept_[name] = value; }
  // Throws for an unknown name and suggests the nearest known one.
  Value kept(const std::string& name) const;

  // During its lifetime, a parameter with an existing name refers to the existing one instead of
  // being an error.
  class Sharing {
   public:
    explicit Sharing(Build& build) : build_(build) { ++build.sharing_; }
    ~Sharing() { --build_.sharing_; }
    Sharing(const Sharing&) = delete;
    Sharing& operator=(const Sharing&) = delete;

   private:
    Build& build_;
  };

  // During its lifetime, outside training, folds a batch norm after a convolution without bias into
  // that convolution's bias (predict/fold_norms.h).
  class FoldingNorms {
   public:
    explicit FoldingNorms(Build& build) : build_(build) { ++build.folding_; }
    ~FoldingNorms() { --build_.folding_; }
    FoldingNorms(const FoldingNorms&) = delete;
    FoldingNorms& operator=(const FoldingNorms&) = delete;

   private:
    Build& build_;
  };
  bool folds_norms() const { return folding_ > 0 && !training_; }

  // The units or channels of the dense layer or convolution in the current scope, which has `given`
  // unless the network is narrowed (nn/narrowing.h).
  int64_t units(int64_t given) { return units_ ? units_(graph_.scope(), given) : given; }
  // From now on; returns the function before.
  using Units = std::function<int64_t(const std::string& layer, int64_t given)>;
  Units set_units(Units units) { return std::exchange(units_, std::move(units)); }

  // During its lifetime, recurrent layers are bidirectional.
  class BothWays {
   public:
    explicit BothWays(Build& build) : build_(build), before_(build.asked_ways_) {
      ++build.both_ways_;
    }
    ~BothWays() { --build_.both_ways_; }
    BothWays(const BothWays&) = delete;
    BothWays& operator=(const BothWays&) = delete;
    // True if a recurrent layer has checked both_ways since.
    bool heard() const { return build_.asked_ways_ > before_; }

   private:
    Build& build_;
    int before_;
  };
  // True if recurrent layers should be bidirectional. Each recurrent layer calls it.
  bool both_ways() {
    ++asked_ways_;
    return both_ways_ > 0;
  }

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
  std::map<std::string, Value> kept_;
  int sharing_ = 0, folding_ = 0;
  int both_ways_ = 0, asked_ways_ = 0;
  Units units_;
};

class Layer {
 public:
  using Function = std::function<Value(Build&, Value)>;

  Layer(std::string kind, Function build) : kind_(std::move(kind)), build_(std::move(build)) {}

  // "dense", "conv", ...: for summaries.
  const std::string& kind() const { return kind_; }
  // Throws if the layer returns an empty value.
  Value operator()(Build& build, Value x) const;

 private:
  std::string kind_;
  Function build_;
};

// Initialises the parameter or state with that name, as a pure function of (seed, name).
void initialise(uint64_t seed, const std::string& name, const Shape& shape,
                const Initialiser& initialiser, std::span<float> values);
Tensor initial_value(uint64_t seed, const std::string& name, const Shape& shape,
                     const Initialiser& initialiser);

}  // namespace artel::nn
