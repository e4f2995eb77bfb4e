// A model as a graph: typed values with static shapes, and the nodes that compute them.
//
//   artel::Graph graph;
//   const artel::Value x = graph.input("x", {artel::DType::f32, {64, 784}});
//   const artel::Value weight = graph.parameter("weight", {784, 10});
//   graph.set_output("scores", artel::matmul(x, weight));
//
// Nodes are stored in topological order. Adding a node infers its output types immediately, so a
// wrong model fails where it is built, with the layer's name and the actual and expected shapes. A
// Graph owns everything. A Value is a cheap handle into it and must not outlive it. Not thread
// safe.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artel/graph/attributes.h"
#include "artel/tensor/dtype.h"
#include "artel/tensor/shape.h"
#include "artel/tensor/split.h"
#include "artel/tensor/tensor.h"

namespace artel {

class Graph;
struct OpDefinition;

using ValueId = int;
using NodeId = int;

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};
std::string to_string(const TensorType& type);

enum class ValueKind {
  input,      // fed at each step
  parameter,  // updated by the optimizer, unless it is frozen
  state,      // kept between steps but not trained, such as running statistics
  constant,   // fixed when the graph is built
  computed,   // the output of a node
};

// A shard of a parameter or state (graph/passes/split_layers.h).
struct ShardOf {
  std::string name;  // of the whole
  Shape shape;       // of the whole
  Split split;
  int shard = 0;
};

struct ValueData {
  TensorType type;
  ValueKind kind = ValueKind::computed;
  std::string name;                      // for input, parameter, state and constant
  NodeId producer = -1;                  // for computed
  int output = 0;                        // which output of the producer
  std::optional<ShardOf> shard_of = {};  // for parameter and state

  // The name by which users know the parameter or state.
  const std::string& whole_name() const { return shard_of ? shard_of->name : name; }
};

// The direction of a node. All forward nodes of a graph come before all others.
enum class Direction {
  forward,
  backward,  // part of the gradient of a value that depends on an input, or recomputed for it
  weight_gradient,  // only for the gradient of a parameter: nothing further back waits for it
};
std::string_view to_string(Direction direction);

struct Node {
  const OpDefinition* op = nullptr;
  std::string name;  // the layer that made it, for messages and random keys
  Direction direction = Direction::forward;
  // In a differentiated graph, the original index of the forward node that this node belongs to:
  // the node itself, or the forward node whose gradient rule has created it. Passes preserve it,
  // and forward nodes stay in this order.
  int origin = -1;
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

// A handle to one value of a graph; empty when default-constructed.
class Value {
 public:
  Value() = default;
  Value(Graph* graph, ValueId id) : graph_(graph), id_(id) {}
  explicit operator bool() const { return graph_ != nullptr; }
  ValueId id() const { return id_; }
  Graph& graph() const { return *graph_; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }

 private:
  Graph* graph_ = nullptr;
  ValueId id_ = -1;
};

// After each step: state = (1 - momentum) * state + momentum * (mean of `observed` over the lanes).
struct StateUpdate {
  ValueId state;
  ValueId observed;
  double momentum;
};

// The gradient of the loss with respect to a parameter. Compiled graphs write it into a bucket.
struct GradientOf {
  ValueId parameter;
  ValueId gradient;
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph(const Graph&) = delete;  // handles point into a graph
  Graph& operator=(const Graph&) = delete;

  Value input(std::string name, TensorType type);
  // `name` is relative to the current scope, like all names of parameters and states.
  // Parameters of other types than f32 are not trained.
  Value parameter(std::string_view name, Shape shape, DType type = DType::f32);
  Value state(std::string_view name, Shape shape);
  Value constant(std::string name, Tensor value);
  // A shard of a parameter or state of another graph.
  Value shard(const ValueData& whole, const Split& split, int shard);

  // Adds a node and returns its outputs. Integers that an op computes with are converted to f32 by
  // a separate node. Throws an Error of kind shape if the op refuses the inputs.
  std::vector<Value> add(std::string_view op, std::vector<Value> inputs,
                         Attributes attributes = {});
  // The first output of the same.
  Value add_one(std::string_view op, std::vector<Value> inputs, Attributes attributes = {});

  void update_state(Value state, Value observed, double momentum);
  void set_gradient(Value parameter, Value gradient);
  void set_output(std::string name, Value value);
  // Its memory is free once the last node has read it.
  void drop_output(std::string_view name);
  Value output(std::string_view name) { return handle(output_id(name)); }
  ValueId output_id(std::string_view name) const;
  bool has_output(std::string_view name) const;

  const std::deque<Node>& nodes() const { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const std::deque<ValueData>& values() const { return values_; }
  const ValueData& value(ValueId id) const { return values_[id]; }
  const TensorType& type(ValueId id) const { return values_[id].type; }
  Value handle(ValueId id) { return Value(this, id); }
  // The first node that is not forward, or the number of nodes if all are.
  NodeId forward_end() const;
  void set_direction(NodeId id, Direction direction) { nodes_[id].direction = direction; }
  void set_origin(NodeId id, int origin) { nodes_[id].origin = origin; }
  const std::vector<StateUpdate>& state_updates() const { return state_updates_; }
  const std::vector<GradientOf>& gradients() const { return gradients_; }
  const std::vector<std::pair<std::string, ValueId>>& outputs() const { return outputs_; }
  const Tensor& constant_data(ValueId id) const;
  // The id of the parameter or state with that full name, or nothing.
  std::optional<ValueId> find(std::string_view name) const;
  std::vector<ValueId> of_kind(ValueKind kind) const;

  // Names given to nodes and parameters until the Scope ends are prefixed with `name` and a dot.
  class Scope {
   public:
    Scope(Graph& graph, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    size_t previous_;
  };
  const std::string& scope() const { return scope_; }
  std::string scoped(std::string_view name) const;

  // Copies a leaf (input, parameter, state, constant) of another graph, keeping its full name.
  Value adopt(const Graph& other, ValueId leaf);
  // Copies a node of another graph with its name, direction and attributes onto inputs of this
  // graph.
  std::vector<Value> adopt(const Node& node, const std::vector<Value>& inputs);

 private:
  ValueId add_value(ValueData data);
  std::vector<Value> append(Node node);

  // Deques: references to nodes, values and their shapes stay valid while the graph grows.
  std::deque<Node> nodes_;
  std::deque<ValueData> values_;
  std::map<ValueId, Tensor> constants_;
  std::map<std::string, ValueId, std::less<>> named_;  // parameters and states
  std::vector<StateUpdate> state_updates_;
  std::vector<GradientOf> gradients_;
  std::vector<std::pair<std::string, ValueId>> outputs_;
  std::string scope_;
};

// Describes everything that affects the result, one line per node, constant, output, and so on,
// each starting with the layer. Graphs with the same text give the same bits.
std::string to_string(const Graph& graph);

}  // namespace artel
