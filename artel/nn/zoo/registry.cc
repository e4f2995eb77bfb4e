#include "artel/nn/zoo/registry.h"

#include <algorithm>
#include <optional>

#include "artel/base/registry.h"
#include "artel/graph/op.h"
#include "artel/nn/zoo/autoencoder.h"
#include "artel/nn/zoo/bert.h"
#include "artel/nn/zoo/classic.h"
#include "artel/nn/zoo/face.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/llama.h"
#include "artel/nn/zoo/mobilenet.h"
#include "artel/nn/zoo/names.h"
#include "artel/nn/zoo/resnet.h"
#include "artel/nn/zoo/vgg.h"
#include "artel/nn/zoo/vit.h"

namespace artel::nn {
namespace {

struct Entry {
  ModelDescription description;
  bool has_small_images = false, has_width = true;
  std::function<Layer(const ModelOptions&)> make;  // transformers: from complete options
  std::optional<ModelOptions> published = {};      // of transformers
  bool any_option = false;                         // for custom models, which may use any option
};

int64_t or_default(int64_t given, int64_t published) { return given ? given : published; }

Entry vgg_entry(int depth, bool batch_norm) {
  return {{fmt::format("vgg{}{}", depth, batch_norm ? "_bn" : ""),
           fmt::format("VGG-{}{} for images of 224 x 224 (or 32 x 32), names as in torchvision",
                       depth, batch_norm ? " with batch norm" : ""),
           {3, 224, 224}},
          true,
          true,
          [=](const ModelOptions& o) {
            return vgg(depth, {.classes = or_default(o.classes, 1000),
                               .batch_norm = batch_norm,
                               .small_images = o.small_images,
                               .width = or_default(o.width, 64)});
          }};
}

Entry resnet_entry(int depth, bool stride_first = false) {
  return {
      {fmt::format("resnet{}{}", depth, stride_first ? "_original" : ""),
       stride_first
           ? fmt::format("ResNet-{} as in its paper: 1x1 convolutions halve the image", depth)
           : fmt::format("ResNet-{} for images of 224 x 224 (or 32 x 32), names as in torchvision",
                         depth),
       {3, 224, 224}},
      true,
      true,
      [=](const ModelOptions& o) {
        return resnet(depth, {.classes = or_default(o.classes, 1000),
                              .small_images = o.small_images,
                              .width = or_default(o.width, 64),
                              .stride_first = stride_first});
      }};
}

Entry mobilenet_entry(const std::string& suffix, const std::string& text,
                      const MobileNetOptions& options) {
  return {{"mobilenet_v2" + suffix,
           "MobileNetV2 for images of 224 x 224, names as in torchvision" + text,
           {3, 224, 224}},
          false,
          false,
          [=](const ModelOptions& o) {
            MobileNetOptions all = options;
            all.classes = or_default(o.classes, options.classes);
            return mobilenet_v2(all);
          }};
}

Entry cifar_resnet_entry(int depth) {
  return {{fmt::format("resnet{}", depth),
           fmt::format("ResNet-{} for CIFAR, shortcuts without parameters", depth),
           {3, 32, 32}},
          false,
          true,
          [=](const ModelOptions& o) {
            return cifar_resnet(
                depth, {.classes = or_default(o.classes, 10), .width = or_default(o.width, 16)});
          }};
}

Entry transformer_entry(ModelDescription description, ModelOptions published,
                        std::function<Layer(const ModelOptions&)> make) {
  return {std::move(description), false, true, std::move(make), std::move(published)};
}

// Four times the width, or the published multiple, in blocks of 32.
int64_t usual_hidden(const ModelOptions& published, int64_t width) {
  if (published.hidden == 0) return 4 * width;
  return (published.hidden * width / published.width + 31) / 32 * 32;
}

ModelOptions completed(const ModelOptions& published, ModelOptions o) {
  // For a model without published classes, the data's classes are tokens.
  const int64_t tokens = published.classes > 0 ? 0 : o.classes;
  o.vocabulary = or_default(o.vocabulary, or_default(tokens, published.vocabulary));
  o.classes = or_default(o.classes, published.classes);
  o.width = or_default(o.width, published.width);
  o.depth = or_default(o.depth, published.depth);
  if (o.heads == 0) o.key_heads = or_default(o.key_heads, published.key_heads);
  o.heads = or_default(o.heads, published.heads);
  o.positions = or_default(o.positions, published.positions);
  o.patch = or_default(o.patch, published.patch);
  o.hidden = or_default(o.hidden, usual_hidden(published, o.width));
  if (o.activation.empty()) o.activation = published.activation;
  if (o.epsilon == 0) o.epsilon = published.epsilon;
  if (o.rotary_base == 0) o.rotary_base = published.rotary_base;
  return o;
}

// Options common to all transformers.
template <typename Options>
Options transformer_options(const ModelOptions& o) {
  Options options;
  options.width = o.width;
  options.depth = o.depth;
  options.heads = o.heads;
  options.hidden = o.hidden;
  options.activation = o.activation;
  options.epsilon = o.epsilon;
  options.dropout = o.dropout;
  return options;
}

// A language model, or the same network with a last layer that scores classes of texts.
ModelDescription language_model(const std::string& name, const std::string& text, int64_t positions,
                                bool classifies) {
  if (!classifies) return {name, text, {positions}, DType::i32, ModelTarget::labels};
  return {name + kClassifierSuffix,
          text + ", for classes of texts",
          {positions},
          DType::i32,
          ModelTarget::label};
}

constexpr int64_t kTextClasses = 2;  // of a classifier whose data does not say how many

Entry gpt2_entry(const std::string& suffix, int64_t width, int64_t depth, int64_t heads,
                 bool classifies) {
  const Gpt2Options published;
  return transformer_entry(
      language_model(
          "gpt2" + suffix,
          fmt::format("GPT-2 with {} layers and width {}, names as published", depth, width),
          published.positions, classifies),
      {.classes = classifies ? kTextClasses : 0,
       .width = width,
       .depth = depth,
       .heads = heads,
       .positions = published.positions,
       .vocabulary = published.vocabulary,
       .activation = published.activation,
       .epsilon = published.epsilon},
      [classifies](const ModelOptions& o) {
        auto options = transformer_options<Gpt2Options>(o);
        options.vocabulary = o.vocabulary;
        options.positions = o.positions;
        options.untied_head = o.untied_head;
        options.classes = classifies ? o.classes : 0;
        return gpt2(options);
      });
}

Entry llama_entry(bool classifies) {
  const LlamaOptions published;
  return transformer_entry(language_model("llama",
                                          "Llama-style network, the size of SmolLM2 with 135 "
                                          "million parameters, names as published",
                                          published.positions, classifies),
                           {.classes = classifies ? kTextClasses : 0,
                            .width = published.width,
                            .depth = published.depth,
                            .heads = published.heads,
                            .key_heads = published.key_heads,
                            .positions = published.positions,
                            .vocabulary = published.vocabulary,
                            .hidden = published.hidden,
                            .activation = published.activation,
                            .epsilon = published.epsilon,
                            .rotary_base = published.rotary_base},
                           [classifies](const ModelOptions& o) {
                             auto options = transformer_options<LlamaOptions>(o);
                             options.classes = classifies ? o.classes : 0;
                             options.vocabulary = o.vocabulary;
                             options.positions = o.positions;
                             options.key_heads = o.key_heads;
                             options.rotary_base = o.rotary_base;
                             options.untied_head = o.untied_head;
                             return llama(options);
                           });
}

Entry bert_entry(const std::string& suffix, const std::string& text, BertHead head) {
  const BertOptions published;
  const bool classifies = head == BertHead::classification || head == BertHead::next_sentence;
  return transformer_entry({"bert" + suffix,
                            "BERT, " + text,
                            {published.positions},
                            DType::i32,
                            classifies ? ModelTarget::label : ModelTarget::labels},
                           {.classes = classifies ? published.classes : 0,
                            .width = published.width,
                            .depth = published.depth,
                            .heads = published.heads,
                            .positions = published.positions,
                            .vocabulary = published.vocabulary,
                            .activation = published.activation,
                            .epsilon = published.epsilon},
                           [=](const ModelOptions& o) {
                             auto options = transformer_options<BertOptions>(o);
                             options.head = head;
                             options.vocabulary = o.vocabulary;
                             options.positions = o.positions;
                             options.classes = o.classes;
                             options.untied_head = o.untied_head;
                             require(
                                 head != BertHead::next_sentence || options.classes == 2,
                                 ErrorKind::invalid_argument,
                                 "[model 'bert{}'] classes: got {}, expected 2 (follows or not)",
                                 suffix, options.classes);
                             return bert(options);
                           });
}

Entry vit_entry(const std::string& size, int64_t width, int64_t heads) {
  const VitOptions published;
  return transformer_entry(
      {"vit_" + size,
       fmt::format("vision transformer of width {} for images of any size, names as in timm",
                   width),
       {3, 224, 224}},
      {.classes = published.classes,
       .width = width,
       .depth = published.depth,
       .heads = heads,
       .patch = published.patch,
       .activation = published.activation,
       .epsilon = published.epsilon},
      [](const ModelOptions& o) {
        auto options = transformer_options<VitOptions>(o);
        options.classes = o.classes;
        options.patch = o.patch;
        return vit(options);
      });
}

std::vector<Entry> make_entries() {
  std::vector<Entry> entries = {
      {{"linear", "one weight a feature: logistic regression of two classes, or a value", {123}},
       false,
       false,
       [](const ModelOptions& o) { return linear(o.classes); }},
      {{"mlp", "two hidden dense layers with ReLU, 1024 units each", {1, 28, 28}},
       false,
       true,
       [](const ModelOptions& o) {
         const int64_t width = or_default(o.width, 1024);
         return mlp({width, width}, or_default(o.classes, 10));
       }},
      {{"lenet5", "LeNet-5 with ReLU and max pooling for images of 28 x 28", {1, 28, 28}},
       false,
       false,
       [](const ModelOptions& o) { return lenet5(or_default(o.classes, 10)); }}};
  for (const int depth : {11, 13, 16, 19})
    for (const bool batch_norm : {false, true}) entries.push_back(vgg_entry(depth, batch_norm));
  for (const int depth : {18, 34, 50, 101, 152}) entries.push_back(resnet_entry(depth));
  entries.push_back(resnet_entry(50, true));
  entries.push_back(mobilenet_entry("", "", {}));
  entries.push_back(mobilenet_entry("_tf", ", padded as TensorFlow does", {.pad_end = true}));
  entries.push_back(mobilenet_entry("_tf_035", ", padded as TensorFlow does, 0.35 of its channels",
                                    {.multiplier = 0.35, .pad_end = true}));
  entries.push_back(
      {{"face_resnet",
        "ResNet of 29 layers that turns faces of 150 x 150 into 128 numbers",
        {3, 150, 150}},
       false,
       false,
       [](const ModelOptions& o) { return face_resnet({.outputs = or_default(o.classes, 128)}); }});
  for (const int depth : {20, 32, 44, 56}) entries.push_back(cifar_resnet_entry(depth));
  entries.push_back({{"autoencoder",
                      "dense autoencoder 256-64-16 and back",
                      {1, 28, 28},
                      DType::f32,
                      ModelTarget::input},
                     false,
                     true,
                     [](const ModelOptions& o) {
                       const int64_t width = or_default(o.width, 256);
                       return autoencoder({width, std::max<int64_t>(1, width / 4),
                                           std::max<int64_t>(1, width / 16)});
                     }});
  entries.push_back({{"conv_autoencoder",
                      "convolutional autoencoder, two halvings and back",
                      {1, 28, 28},
                      DType::f32,
                      ModelTarget::input},
                     false,
                     true,
                     [](const ModelOptions& o) {
                       const int64_t width = or_default(o.width, 16);
                       return conv_autoencoder({width, 2 * width});
                     }});
  for (const bool classifies : {false, true}) {
    entries.push_back(gpt2_entry("", 768, 12, 12, classifies));
    entries.push_back(gpt2_entry("_medium", 1024, 24, 16, classifies));
    entries.push_back(gpt2_entry("_large", 1280, 36, 20, classifies));
    entries.push_back(gpt2_entry("_xl", 1600, 48, 25, classifies));
    entries.push_back(llama_entry(classifies));
  }
  entries.push_back(bert_entry("_masked", "predicts masked tokens", BertHead::masked_language));
  entries.push_back(
      bert_entry("_pretraining", "masked tokens and next sentences", BertHead::pretraining));
  entries.push_back(
      bert_entry("_classifier", "classes of texts or of pairs", BertHead::classification));
  entries.push_back(bert_entry("_next_sentence", "whether the second text of a pair follows",
                               BertHead::next_sentence));
  entries.push_back(bert_entry("", "its last hidden states", BertHead::none));
  entries.push_back(vit_entry("tiny", 192, 3));
  entries.push_back(vit_entry("small", 384, 6));
  entries.push_back(vit_entry("base", 768, 12));
  return entries;
}

Registry<Entry>& all_entries() {
  static Registry<Entry> models(
      "model",
      [] {
        Registry<Entry>::Entries entries;
        for (Entry& entry : make_entries())
          entries.emplace_back(entry.description.name, std::move(entry));
        return entries;
      }(),
      Names::words);
  return models;
}

// Throws for an option that the network does not have.
void check_options(const Entry& entry, const ModelOptions& options) {
  if (entry.any_option) return;
  const std::string& name = entry.description.name;
  require(options.classes >= 0 && options.width >= 0, ErrorKind::invalid_argument,
          "[model '{}'] got {} classes and width {}, expected positive numbers", name,
          options.classes, options.width);
  require(entry.has_width || options.width == 0, ErrorKind::invalid_argument,
          "[model '{}'] width: got {}, but the width of this network is fixed", name,
          options.width);
  require(entry.has_small_images || !options.small_images, ErrorKind::invalid_argument,
          "[model '{}'] small_images: this network has no such variant; leave it out", name);
  require(
      entry.published ||
          (options.depth == 0 && options.heads == 0 && options.positions == 0 &&
           options.patch == 0 && options.vocabulary == 0 && options.hidden == 0 &&
           options.activation.empty() && options.epsilon == 0 && options.dropout == 0),
      ErrorKind::invalid_argument,
      "[model '{}'] depth, heads, positions, patch, vocabulary, hidden, activation, epsilon and "
      "dropout are options of transformers; leave them out",
      name);
  const bool grouped = entry.published && entry.published->key_heads > 0;
  require(grouped || (options.key_heads == 0 && options.rotary_base == 0),
          ErrorKind::invalid_argument,
          "[model '{}'] key_heads and rotary_base are options of llama; leave them out", name);
  const bool reads_tokens = entry.description.input_type == DType::i32;
  require(!reads_tokens || options.patch == 0, ErrorKind::invalid_argument,
          "[model '{}'] patch: got {}, but this network has no patches; leave it out", name,
          options.patch);
  require(reads_tokens || (options.positions == 0 && options.vocabulary == 0),
          ErrorKind::invalid_argument,
          "[model '{}'] positions and vocabulary are options of networks that read text; leave "
          "them out",
          name);
  const std::vector<std::string> activations = activation_names();
  const std::string& activation = options.activation;
  require(activation.empty() ||
              std::find(activations.begin(), activations.end(), activation) != activations.end(),
          ErrorKind::invalid_argument, "[model '{}'] activation: got \"{}\", expected one of {}{}",
          name, activation, join(activations, ", "), did_you_mean(activation, activations));
  require(!options.untied_head || token_head(name), ErrorKind::invalid_argument,
          "[model '{}'] untied_head: this network does not score tokens; leave it out", name);
}

}  // namespace

TensorType target_of(const ModelDescription& model, const TensorType& sample) {
  switch (model.target) {
    case ModelTarget::label:
      return {DType::i32, Shape{}};
    case ModelTarget::labels:
      return {DType::i32, sample.shape};
    case ModelTarget::input:
      return sample;
  }
  fail(ErrorKind::internal, "[model '{}'] unknown target", model.name);
}

std::vector<ModelDescription> model_list() {
  std::vector<ModelDescription> list;
  for (const std::string& name : all_entries().names())
    list.push_back(all_entries().at(name).description);
  return list;
}

void register_model(const ModelDescription& description,
                    std::function<Layer(const ModelOptions&)> make) {
  require_function("model", description.name, make);
  all_entries().add(description.name,
                    {.description = description, .make = std::move(make), .any_option = true});
}

Layer model_by_name(const std::string& name, const ModelOptions& options) {
  const Entry& entry = all_entries().at(name);
  check_options(entry, options);
  return entry.make(entry.published ? completed(*entry.published, options) : options);
}

ModelOptions complete_options(const std::string& name, const ModelOptions& options) {
  const Entry& entry = all_entries().at(name);
  require(entry.published.has_value(), ErrorKind::invalid_argument,
          "[model '{}'] is not a transformer", name);
  return completed(*entry.published, options);
}

}  // namespace artel::nn
