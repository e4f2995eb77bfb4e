#include "tests/model_fuzz/coverage.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

#include "artel/comm/codecs/codec.h"
#include "artel/graph/ops/catalogue.h"
#include "artel/graph/passes/lower.h"
#include "artel/nn/parse_layers.h"
#include "artel/plan/schedule.h"
#include "artel/predict/batches.h"
#include "artel/train/step/exchange.h"
#include "tests/model_fuzz/any_case.h"
#include "tests/model_fuzz/graph_maker.h"
#include "tests/model_fuzz/layer_text.h"

namespace artel::model_fuzz {
namespace {

// The lower-case words of a text such as "conv CHANNELS KERNEL [stride S] [padding P|same]".
std::vector<std::string> small_words(const std::string& text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : text) {
    const bool small = std::islower(static_cast<unsigned char>(c)) || c == '_' ||
                       (inside && std::isdigit(static_cast<unsigned char>(c)));
    if (small && !inside) words.emplace_back();
    if (small) words.back() += c;
    inside = small;
  }
  return words;
}

class Seen {
 public:
  void add(const AnyCase& any) {
    if (const auto* graph = std::get_if<GraphCase>(&any)) {
      const Graph made = make_graph(graph->recipes, graph->large);
      if (made.has_output("loss")) add(lower(made, Differentiation{}));
    } else if (const auto* network = std::get_if<NetworkCase>(&any)) {
      add(*network);
    } else if (const auto* motion = std::get_if<MotionCase>(&any)) {
      seen_.insert("motion by " + motion->strategy);
      seen_.insert("motion of " + motion->optimizer);
      seen_.insert(fmt::format("motion with delay {}", motion->delay));
      if (motion->local_steps > 1) seen_.insert("motion in local steps");
      if (motion->resumed_by > motion->workers) seen_.insert("motion resumed by more workers");
    }
  }

  std::vector<std::string> missing() const {
    std::vector<std::string> all;
    for (const std::string& syntax : nn::layer_syntax()) {
      const std::vector<std::string> words = small_words(syntax);
      all.push_back("layer " + words[0]);
      for (size_t i = 1; i < words.size(); ++i)
        all.push_back(fmt::format("option {} of {}", words[i], words[0]));
    }
    // Those of layers that are cut into shards, which no network here is large enough for, and
    // those of quantised weights, which are not trained, are compared in tests/unit/reference.
    for (const OpDefinition& op : builtin_ops())
      if (!op.name.starts_with("shard_") && !op.name.starts_with("quantised_"))
        all.push_back("op " + op.name);
    for (const std::string& name : plan::schedule_names()) all.push_back("schedule " + name);
    for (const std::string& name : exchange_names()) all.push_back("strategy " + name);
    for (const char* level : {"optimizer", "gradients", "weights"})
      all.push_back(fmt::format("sharding {}", level));
    for (const char* what : {"strategy ps", "two replicas", "threads of a worker", "buckets",
                             "lanes that move", "8 lanes of 8 samples", "lines of text"})
      all.emplace_back(what);
    for (const std::string& name : exchange_names()) all.push_back("motion by " + name);
    for (const std::string& name : optim::optimizer_names()) all.push_back("motion of " + name);
    for (const char* what :
         {"by ps", "by downpour", "by ddpg", "with delay 0", "with delay 1", "with delay 4",
          "with delay -1", "in local steps", "resumed by more workers"})
      all.push_back(fmt::format("motion {}", what));
    for (const std::string& form : comm::codec_names())
      all.push_back("codec " + form.substr(0, form.find(' ')));
    for (const std::string& name : loss_names()) all.push_back("loss " + name);
    for (const std::string& name : metric_names()) all.push_back("metric " + name);
    for (const std::string& name : optim::optimizer_names()) all.push_back("optimizer " + name);
    std::erase_if(all, [&](const std::string& what) { return seen_.contains(what); });
    return all;
  }

 private:
  void add(const Graph& graph) {
    for (const Node& node : graph.nodes()) seen_.insert("op " + node.op->name);
  }

  // How the workers of a mesh share its training.
  void add_sharing(const NetworkCase& network) {
    if (network.lines) seen_.insert("lines of text");
    if (network.workers == 1) return;
    if (network.mesh.replicas > 1) seen_.insert("two replicas");
    if (network.threads > 1) seen_.insert("threads of a worker");
    if (network.mesh.bucket_bytes > 0) seen_.insert("buckets");
    if (network.mesh.moves_lanes) seen_.insert("lanes that move");
    if (network.lanes == 8 && network.batch >= 8 * 8) seen_.insert("8 lanes of 8 samples");
  }

  void add(const NetworkCase& network) {
    const Words words = words_of(network.layers);
    for (const Part& part : parts_of(words)) {
      const std::string& kind = kind_of(words, part);
      seen_.insert("layer " + kind);
      for (size_t i = part.begin; i < part.end; ++i)
        seen_.insert(fmt::format("option {} of {}", words[i], kind));
    }
    seen_.insert("loss " + network.loss);
    for (const std::string& metric : network.metrics) seen_.insert("metric " + metric);
    seen_.insert("optimizer " + network.optimizer.at("name"));
    const Loss loss = network.training_loss();
    seen_.insert("schedule " + network.mesh.schedule);
    seen_.insert("sharding " + network.mesh.sharding);
    seen_.insert("strategy " + network.mesh.strategy);
    add_sharing(network);
    if (!network.mesh.is_exact())
      seen_.insert("codec " + network.mesh.compress.substr(0, network.mesh.compress.find(' ')));
    const std::vector<Metric> metrics = metrics_by_name(network.metrics);
    const int64_t samples = (network.batch + network.lanes - 1) / network.lanes;
    const TensorType x = batch_of(network.x(), samples), y = batch_of(network.y(), samples);
    add(training_graph(
            network.model(), x, y, loss,
            [&](const std::string& name) { return network.trained(name); }, metrics)
            .graph);
    add(evaluation_graph(network.model(), x, y, loss, metrics).graph);
  }

  std::set<std::string> seen_;
};

}  // namespace

std::vector<std::string> never_made(uint64_t seed, int64_t cases) {
  Seen seen;
  for (int64_t i = 0; i < cases; ++i) seen.add(make_case(seed, static_cast<uint64_t>(i)));
  return seen.missing();
}

}  // namespace artel::model_fuzz
