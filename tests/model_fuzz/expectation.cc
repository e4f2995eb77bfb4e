#include "tests/model_fuzz/expectation.h"

#include <algorithm>
#include <cmath>

#include "artel/graph/ops.h"
#include "artel/predict/batches.h"
#include "tests/model_fuzz/compare.h"

namespace artel::model_fuzz {
namespace {

using reference::Array;

void accumulate(Array& sum, const Array& term, double weight) {
  if (sum.data.empty()) sum = {term.shape, std::vector<double>(term.data.size(), 0)};
  for (size_t i = 0; i < term.data.size(); ++i) sum.data[i] += weight * term.data[i];
}

// How close two scores of a row are to each other, or single ones to 0.
double margin_of(const Array& scores) {
  const auto columns = static_cast<size_t>(scores.shape.rank() > 1 ? scores.shape.back() : 1);
  double margin = std::numeric_limits<double>::infinity();
  for (size_t first = 0; first + columns <= scores.data.size(); first += columns) {
    std::vector<double> row(scores.data.begin() + static_cast<long>(first),
                            scores.data.begin() + static_cast<long>(first + columns));
    if (columns == 1) row.push_back(0);
    std::sort(row.begin(), row.end());
    for (size_t i = 1; i < row.size(); ++i) margin = std::min(margin, row[i] - row[i - 1]);
  }
  return margin;
}

// For rows of a score and a class, 0 or 1: the numbers of pairs in order and of all pairs, by
// visiting each pair.
Array ordered_pairs(const Array& rows, double& margin) {
  double right = 0, pairs = 0;
  for (size_t a = 0; a < rows.data.size(); a += 3)
    for (size_t b = 0; b < rows.data.size(); b += 3) {
      if (rows.data[a + 2] == 0 || rows.data[b + 1] == 0) continue;
      const double higher = rows.data[a] - rows.data[b];
      right += higher > 0 ? 1 : higher == 0 ? 0.5 : 0;
      pairs += 1;
      margin = std::min(margin, std::abs(higher));
    }
  return {{2}, {right, pairs}};
}

}  // namespace

std::string gradient_of(const std::string& parameter) { return "gradient of '" + parameter + "'"; }
std::string state_of(const std::string& state) { return "state '" + state + "'"; }

bool counts_answers(const std::string& what) {
  return what.starts_with("metric ") && what != Metrics::output_of("perplexity") &&
         what != Metrics::output_of("mean absolute error");
}

Graph Expectation::plain_graph(int64_t samples, bool training) const {
  Graph graph;
  nn::Build build(graph, training, {},
                  [this](const std::string& name) { return network_.trained(name); });
  const Value x = graph.input("x", batch_of(network_.x(), samples));
  build.set_input("x", x);
  Value prediction = network_.model().network()(build, x);
  if (prediction.type().dtype != DType::f32) prediction = unary("to_f32", prediction);
  graph.set_output("prediction", prediction);
  const Value y = graph.input("y", batch_of(network_.y(), samples));
  {
    const Graph::Scope scope(graph, "loss");
    const Loss make = training ? network_.training_loss() : loss_by_name(network_.loss);
    const WeightedMean loss = make(prediction, y);
    graph.set_output("loss", loss.weighted);
    if (loss.weight) graph.set_output("loss_weight", loss.weight);
  }
  Metrics::add_to(graph, metrics_by_name(network_.metrics), prediction, y);
  return graph;
}

const Graph& Expectation::training_graph_of(int64_t samples) {
  const auto found = graphs_.find(samples);
  if (found != graphs_.end()) return found->second;
  return graphs_.emplace(samples, plain_graph(samples, true)).first->second;
}

Results Expectation::step(int64_t number, const Arrays& leaves, const reference::Noise& noise) {
  Results result;
  const Tensor x = network_.inputs(number), y = network_.targets(number);
  const int64_t batch = network_.samples_of(number);
  reference::Leaves all = leaves;
  std::map<std::string, double> momentum;
  Array scores;                     // of all lanes, for the metric auc
  double working = 0, counted = 0;  // lanes with samples; the weight of all samples
  result.values["loss"] = {{}, {0.0}};
  for (int lane = 0; lane < network_.lanes; ++lane) {
    const auto [begin, end] = Stepper::rows_of_lane(batch, static_cast<int>(network_.lanes), lane);
    if (begin == end) continue;
    ++working;
    const Graph& graph = training_graph_of(end - begin);
    all["x"] = reference::from_tensor(x.rows(begin, end));
    all["y"] = reference::from_tensor(y.rows(begin, end));
    const reference::RandomKey key = {network_.seed, number, lane};
    const std::vector<Array> values = reference::run(graph, all, key, noise);
    const ValueId loss = graph.output_id("loss");
    const auto weight = static_cast<double>(end - begin);
    counted +=
        weight *
        (graph.has_output("loss_weight") ? values[graph.output_id("loss_weight")].data[0] : 1);
    result.values["loss"].data[0] += weight * values[loss].data[0];
    std::vector<ValueId> parameters = graph.of_kind(ValueKind::parameter);
    std::erase_if(parameters, [&](ValueId id) { return !network_.trained(graph.value(id).name); });
    const std::vector<Array> gradients =
        reference::gradients(graph, values, loss, parameters, key, noise);
    for (size_t i = 0; i < parameters.size(); ++i)
      accumulate(result.values[gradient_of(graph.value(parameters[i]).name)], gradients[i], weight);
    for (const StateUpdate& update : graph.state_updates()) {
      const std::string& name = graph.value(update.state).name;
      momentum[name] = update.momentum;
      accumulate(result.values[state_of(name)], values[update.observed], 1);
    }
    for (const auto& [name, id] : graph.outputs()) {
      if (name == Metrics::output_of("auc"))
        scores.data.insert(scores.data.end(), values[id].data.begin(), values[id].data.end());
      else if (name.starts_with("metric "))
        accumulate(result.values[name], values[id], 1);
    }
    result.margin = std::min(result.margin, margin_of(values[graph.output_id("prediction")]));
  }
  if (std::ranges::count(network_.metrics, "auc") > 0)
    result.values[Metrics::output_of("auc")] = ordered_pairs(scores, result.margin);
  // The mean over the samples that count, in whichever lanes they are.
  for (auto& [what, value] : result.values)
    if (counted > 0 && (what == "loss" || what.starts_with("gradient")))
      for (double& number : value.data) number /= counted;
  for (const auto& [name, share] : momentum) {
    Array& observed = result.values[state_of(name)];
    for (size_t i = 0; i < observed.data.size(); ++i)
      observed.data[i] = (1 - share) * all[name].data[i] + share * observed.data[i] / working;
  }
  for (const auto& [what, value] : result.values)
    if (what.starts_with("gradient"))
      result.gradient_scale = std::max(result.gradient_scale, largest(value));
  return result;
}

Results Expectation::evaluation(const Arrays& leaves, const reference::Noise& noise) {
  const Tensor x = network_.inputs(1), y = network_.targets(1);
  const Graph graph = plain_graph(x.shape()[0], false);
  reference::Leaves all = leaves;
  all["x"] = reference::from_tensor(x);
  all["y"] = reference::from_tensor(y);
  const std::vector<Array> values = reference::run(graph, all, {network_.seed, 0, 0}, noise);
  Results result;
  for (const auto& [name, id] : graph.outputs()) result.values[name] = values[id];
  result.margin = margin_of(result.values.at("prediction"));
  return result;
}

}  // namespace artel::model_fuzz
