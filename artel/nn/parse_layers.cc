#include "artel/nn/parse_layers.h"

#include <map>

#include "artel/base/registry.h"
#include "artel/graph/op.h"
#include "artel/nn/layer_kinds.h"
#include "artel/nn/layers.h"
#include "artel/nn/named_values.h"

namespace artel::nn {
namespace {

constexpr size_t kMostLayers = 1 << 16;
constexpr int kMostDepth = 16;

constexpr std::string_view kSame = "same";
constexpr const char* kSameSyntax = "same NAME";

// The layers of one list. Some of them have names.
struct Siblings {
  std::vector<Layer> layers;
  std::map<std::string, Layer> named;
};

void parse_layer(LayerWords& words, int depth, Siblings& siblings);

Registry<LayerKind>::Entries make_kinds() {
  Registry<LayerKind>::Entries entries;
  for (std::vector<LayerKind>& kinds :
       std::vector{basic_layers(), transformer_layers(), recurrent_layers(), named_value_layers()})
    for (LayerKind& kind : kinds) entries.emplace_back(kind.name, std::move(kind));
  for (const std::string& name : activation_names())
    entries.emplace_back(
        name, LayerKind{name, "", [name](LayerWords&, int) { return activation(name); }});
  return entries;
}

Registry<LayerKind>& all_kinds() {
  static Registry<LayerKind> kinds("layer", make_kinds(), Names::words);
  return kinds;
}

// A registered activation op is also a layer.
void add_activations() {
  for (const std::string& name : activation_names())
    if (!all_kinds().find(name))
      register_layer(name, "", [name](LayerWords&) { return activation(name); });
}

std::string syntax_of(const LayerKind& kind) {
  return kind.arguments.empty() ? kind.name : kind.name + " " + kind.arguments;
}

// "same NAME": uses a layer of the same list once more, with the same parameters.
Layer parse_same(LayerWords& words, const Siblings& siblings) {
  const std::string name = words.name("the name of a layer");
  const auto found = siblings.named.find(name);
  if (found != siblings.named.end()) return shared(found->second);
  std::vector<std::string> known;
  for (const auto& [sibling, layer] : siblings.named) known.push_back(sibling);
  words.reject("unknown layer '{}'{}; layers with names before it: {}", name,
               did_you_mean(name, known), known.empty() ? "none" : join(known, ", "));
}

void parse_layer(LayerWords& words, int depth, Siblings& siblings) {
  const std::string name = words.label();
  const std::string kind_name = words.take("a layer such as 'dense 10'");
  const bool same = kind_name == kSame;
  const LayerKind* const kind = same ? nullptr : all_kinds().find(kind_name);
  if (!same && !kind) words.reject("{}", all_kinds().unknown(kind_name));
  Layer layer = same ? parse_same(words, siblings) : kind->parse(words, depth);
  if (words.more())
    words.reject("got an extra '{}', expected: {}", words.take("a word"),
                 same ? kSameSyntax : syntax_of(*kind));
  if (!name.empty()) {
    if (same)
      words.reject("got the name '{}', expected none: it has the name of the layer that it repeats",
                   name);
    layer = named(name, layer);
    siblings.named.emplace(name, layer);
  }
  siblings.layers.push_back(std::move(layer));
}

}  // namespace

std::vector<Layer> parse_braces(LayerWords& words, int depth) {
  if (depth >= kMostDepth) words.reject("got blocks nested deeper than {}", kMostDepth);
  words.expect("{");
  Siblings siblings;
  do {
    parse_layer(words, depth + 1, siblings);
  } while (words.accept("|"));
  words.expect("}");
  return std::move(siblings.layers);
}

void parse_options(LayerWords& words, std::string_view kind, const std::function<bool()>& option,
                   const std::vector<std::string>& known) {
  while (words.more())
    if (!option()) words.reject_option(kind, known);
}

Layer parse_layers(const std::vector<std::string>& lines) {
  add_activations();
  require(!lines.empty() && lines.size() <= kMostLayers, ErrorKind::invalid_argument,
          "[layers] got {} layers, expected 1 to {}", lines.size(), kMostLayers);
  Siblings siblings;
  for (size_t i = 0; i < lines.size(); ++i) {
    LayerWords words(i, lines[i]);
    parse_layer(words, 0, siblings);
    if (!words.at_end()) words.reject("got '{}' without a '{{'", words.take("a word"));
  }
  return sequential(std::move(siblings.layers));
}

std::vector<std::string> layer_syntax() {
  add_activations();
  std::vector<std::string> lines;
  for (const LayerKind* kind : all_kinds().all()) lines.push_back(syntax_of(*kind));
  lines.emplace_back(kSameSyntax);
  return lines;
}

void register_layer(const std::string& name, const std::string& arguments,
                    std::function<Layer(LayerWords&)> parse) {
  require_function("layer", name, parse);
  require(name != kSame, ErrorKind::invalid_argument,
          "layer '{}': the word is reserved for repeating a layer; try another name", name);
  all_kinds().add(name, {name, arguments, [parse = std::move(parse)](LayerWords& words, int) {
                           return parse(words);
                         }});
}

}  // namespace artel::nn
