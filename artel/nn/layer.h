// A layer is a recipe: given a graph and an input value it adds nodes and parameters and returns
// the output. Layers compose; nothing is computed here.
//
//   // Adds a learnt shift to each feature.
//   const artel::nn::Layer shift("shift", [](artel::nn::Build& build, artel::Value x) {
//     return artel::add(x, build.parameter("shift", {x.shape().back()}, artel::nn::constant(0)));
//   });
//   const artel::Model network = artel::nn::sequential({artel::nn::dense(32), shift});
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
  // Whether the parameter with a full name is trained.
  using Trained = std::function<bool(const std::string&)>;

  // `trained` is absent if all parameters are trained.
  explicit Build(Graph& graph, bool training, Value places = {}, Trained trained = {})
      : graph_(graph), training_(training), places_(places), trained_(std::move(trained)) {}

  Graph& graph() { return graph_; }
  // Whether dropout is active and batch norm uses the statistics of the batch.
  bool training() const { return training_; }
  // Whether the parameter of this name, relative to the current scope, is trained.
  bool trains(std::string_view name) const {
    return training_ && (!trained_ || trained_(graph_.scoped(name)));
  }
  // The positions in the text of the input's tokens, i32 [tokens], when a text is read piece by
  // piece and states keep what attention needs from earlier pieces; otherwise empty.
  Value places() const { return places_; }
  // Throws an Error of kind unsupported if a text is read that way, for a layer whose results
  // depend on earlier pieces, too.
  void require_whole_text(std::string_view layer);

  // Values that layers keep under a name for others (nn/named_values.h). Throws for a name that is
  // taken.
  void keep(const std::string& name, Value value);
  // An input of the network, "x" if there is one; it is kept, too.
  void set_input(const std::string& name, Value value) { kept_[name] = value; }
  // Throws for an unknown name, with the nearest known one.
  Value kept(const std::string& name) const;

  // While one lives, a parameter whose name exists already is that one, not an error.
  class Sharing {
   public:
    explicit Sharing(Build& build) : build_(build) { ++build.sharing_; }
    ~Sharing() { --build_.sharing_; }
    Sharing(const Sharing&) = delete;
    Sharing& operator=(const Sharing&) = delete;

   private:
    Build& build_;
  };

  // While one lives, and outside training, a batch norm right after a convolution without a bias is
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

  // While one lives, recurrent layers go both ways: also from the end to the beginning.
  class BothWays {
   public:
    explicit BothWays(Build& build) : build_(build), before_(build.asked_ways_) {
      ++build.both_ways_;
    }
    ~BothWays() { --build_.both_ways_; }
    BothWays(const BothWays&) = delete;
    BothWays& operator=(const BothWays&) = delete;
    // Whether a recurrent layer has asked since.
    bool heard() const { return build_.asked_ways_ > before_; }

   private:
    Build& build_;
    int before_;
  };
  // Each recurrent layer asks whether it is to go both ways.
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

// The initial value of the parameter or state with that name: a function of (seed, name) alone.
void initialise(uint64_t seed, const std::string& name, const Shape& shape,
                const Initialiser& initialiser, std::span<float> values);
Tensor initial_value(uint64_t seed, const std::string& name, const Shape& shape,
                     const Initialiser& initialiser);

}  // namespace artel::nn
