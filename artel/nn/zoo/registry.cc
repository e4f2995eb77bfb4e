#include "artel/nn/zoo/registry.h"

#include <algorithm>
#include <functional>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/nn/zoo/autoencoder.h"
#include "artel/nn/zoo/bert.h"
#include "artel/nn/zoo/classic.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/resnet.h"
#include "artel/nn/zoo/vgg.h"
#include "artel/nn/zoo/vit.h"

namespace artel::nn {
namespace {

struct Entry {
  ModelDescription description;
  bool has_small_images = false, has_width = true;
  std::function<Layer(const ModelOptions&)> make;
  bool is_transformer = false;
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

Entry resnet_entry(int depth) {
  return {{fmt::format("resnet{}", depth),
           fmt::format("ResNet-{} for images of 224 x 224 (or 32 x 32), names as in torchvision",
                       depth),
           {3, 224, 224}},
          true,
          true,
          [=](const ModelOptions& o) {
            return resnet(depth, {.classes = or_default(o.classes, 1000),
                                  .small_images = o.small_images,
                                  .width = or_default(o.width, 64)});
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

Entry transformer_entry(ModelDescription description,
                        std::function<Layer(const ModelOptions&)> make) {
  return {std::move(description), false, true, std::move(make), true};
}

// A published network with the sizes that were asked for.
template <typename Options>
Options resized(Options published, const ModelOptions& o) {
  published.width = or_default(o.width, published.width);
  published.depth = or_default(o.depth, published.depth);
  published.heads = or_default(o.heads, published.heads);
  published.dropout = o.dropout;
  return published;
}

Entry gpt2_entry(const std::string& suffix, int64_t width, int64_t depth, int64_t heads) {
  return transformer_entry(
      {"gpt2" + suffix,
       fmt::format("GPT-2 of {} layers and the width {}, names as published", depth, width),
       {1024},
       DType::i32,
       ModelTarget::labels},
      [=](const ModelOptions& o) {
        Gpt2Options options =
            resized<Gpt2Options>({.width = width, .depth = depth, .heads = heads}, o);
        options.vocabulary = or_default(o.vocabulary, or_default(o.classes, options.vocabulary));
        options.positions = or_default(o.positions, options.positions);
        return gpt2(options);
      });
}

Entry bert_entry(const std::string& suffix, const std::string& text, BertHead head) {
  const bool classifies = head == BertHead::classification || head == BertHead::next_sentence;
  return transformer_entry({"bert" + suffix,
                            "BERT, " + text,
                            {512},
                            DType::i32,
                            classifies ? ModelTarget::label : ModelTarget::labels},
                           [=](const ModelOptions& o) {
                             BertOptions options = resized<BertOptions>({.head = head}, o);
                             // Only a classifier has classes that are no tokens.
                             const int64_t tokens =
                                 or_default(o.vocabulary, classifies ? 0 : o.classes);
                             options.vocabulary = or_default(tokens, options.vocabulary);
                             options.positions = or_default(o.positions, options.positions);
                             options.classes = or_default(o.classes, options.classes);
                             require(head != BertHead::next_sentence || options.classes == 2,
                                     ErrorKind::invalid_argument,
                                     "[model 'bert{}'] classes: got {}, expected 2: it follows, or "
                                     "not",
                                     suffix, options.classes);
                             return bert(options);
                           });
}

Entry vit_entry(const std::string& size, int64_t width, int64_t heads) {
  return transformer_entry(
      {"vit_" + size,
       fmt::format("vision transformer of the width {} for images of any size, names as in timm",
                   width),
       {3, 224, 224}},
      [=](const ModelOptions& o) {
        VitOptions options = resized<VitOptions>({.width = width, .heads = heads}, o);
        options.classes = or_default(o.classes, options.classes);
        options.patch = or_default(o.patch, options.patch);
        return vit(options);
      });
}

std::vector<Entry> make_entries() {
  std::vector<Entry> entries = {
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
  for (const int depth : {18, 34, 50}) entries.push_back(resnet_entry(depth));
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
  entries.push_back(gpt2_entry("", 768, 12, 12));
  entries.push_back(gpt2_entry("_medium", 1024, 24, 16));
  entries.push_back(gpt2_entry("_large", 1280, 36, 20));
  entries.push_back(gpt2_entry("_xl", 1600, 48, 25));
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

const std::vector<Entry>& all_entries() {
  static const std::vector<Entry> entries = make_entries();
  return entries;
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
  for (const Entry& entry : all_entries()) list.push_back(entry.description);
  return list;
}

Layer model_by_name(const std::string& name, const ModelOptions& options) {
  require(options.classes >= 0 && options.width >= 0, ErrorKind::invalid_argument,
          "[model '{}'] got {} classes and the width {}, expected positive numbers", name,
          options.classes, options.width);
  std::vector<std::string> names;
  for (const Entry& entry : all_entries()) {
    names.push_back(entry.description.name);
    if (names.back() != name) continue;
    require(entry.has_width || options.width == 0, ErrorKind::invalid_argument,
            "[model '{}'] width: got {}, but the width of this network is fixed", name,
            options.width);
    require(entry.has_small_images || !options.small_images, ErrorKind::invalid_argument,
            "[model '{}'] small_images: this network has no such variant; leave it out", name);
    require(entry.is_transformer ||
                (options.depth == 0 && options.heads == 0 && options.positions == 0 &&
                 options.patch == 0 && options.vocabulary == 0 && options.dropout == 0),
            ErrorKind::invalid_argument,
            "[model '{}'] depth, heads, positions, patch, vocabulary and dropout are options of "
            "transformers; leave them out",
            name);
    const bool reads_tokens = entry.description.input_type == DType::i32;
    require(!reads_tokens || options.patch == 0, ErrorKind::invalid_argument,
            "[model '{}'] patch: got {}, but this network has no patches; leave it out", name,
            options.patch);
    require(reads_tokens || (options.positions == 0 && options.vocabulary == 0),
            ErrorKind::invalid_argument,
            "[model '{}'] positions and vocabulary are options of networks that read text; leave "
            "them out",
            name);
    return entry.make(options);
  }
  fail(ErrorKind::not_found, "unknown model '{}'{}; known: {}", name, did_you_mean(name, names),
       join(names, ", "));
}

}  // namespace artel::nn
