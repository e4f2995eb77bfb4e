// Published bases: trained networks, by name.
//
//   const artel::transfer::Base base = artel::transfer::load_base("resnet50_keras");
//   artel::Predictor predictor(base.model(), base.sample, base.weights());
//   const artel::Tensor scores = predictor(pictures);  // prepared according to base.pictures
//
// A base is downloaded once, verified by its SHA-256 digest, converted to the parameter names and
// axis order of the zoo, and cached (see data/fetch.h).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "artel/data/fetch.h"
#include "artel/data/images/augment.h"
#include "artel/nn/model.h"
#include "artel/predict/predictor.h"
#include "artel/run/config/config.h"
#include "artel/tensor/named_tensor.h"

namespace artel::transfer {

// Preparation of pictures for a base: RGB in [0, 1], scaled such that the shorter side is `scaled`,
// cropped to the centre square of `size`, and normalised per channel.
struct PictureRules {
  int64_t size = 224;
  int64_t scaled = 256;
  std::vector<float> means = {0.485f, 0.456f, 0.406f};
  std::vector<float> deviations = {0.229f, 0.224f, 0.225f};

  data::Transform normalise() const { return data::normalise(means, deviations); }
};

// The features of `test_picture`, as computed by the framework that published the network.
struct ExpectedFeatures {
  std::vector<float> first;  // the first few
  float length = 0;          // Euclidean norm of all features
};

// The description of a base, available before it is downloaded.
struct BaseDescription {
  std::string name;
  std::string text;     // one line
  std::string licence;  // licence of the weights
  std::string source;   // publisher and location
  std::string trained_on;
  ModelConfig model;  // zoo network with its published options
  // The module of the last layer, which is replaced for other classes. Empty for text networks.
  std::string head;
  int64_t features = 0;   // inputs of the head, or width of a token
  bool headless = false;  // published without a head; its weights are zero
  bool embeds = false;    // outputs are embeddings instead of classes
  TensorType sample;      // one input; for texts [positions] of i32
  PictureRules pictures;  // ignored by text networks
  data::CatalogueEntry files;
  std::string weights;  // weight file; empty for a folder in Hugging Face's layout
  std::function<NamedTensors(const std::filesystem::path& folder)> convert;  // null if not needed
  ExpectedFeatures expected;
};

// All published bases, in display order.
const std::vector<BaseDescription>& base_list();
// Throws for an unknown name and suggests the nearest known one.
const BaseDescription& find_base(const std::string& name);

// A base stored on this machine.
struct Base {
  std::string name;    // or the given path
  ModelConfig config;  // for RunConfig::model; config.weights is the file or folder of the weights
  std::string head;    // this and the next three as in BaseDescription
  int64_t features = 0;
  bool headless = false, embeds = false;
  TensorType sample;
  PictureRules pictures;
  std::vector<std::string> classes;  // names; empty if unknown or not a classifier

  bool reads_text() const { return sample.dtype == DType::i32; }
  // The network as published, or with another number of classes.
  Model model(int64_t classes = 0) const;
  // The weights by the names of that model.
  NamedTensors weights() const;
};

// The folder of a converted base; empty if it has not been downloaded.
std::optional<std::filesystem::path> find_base_folder(const BaseDescription& base);
// Downloads and converts a base unless that is done. Shows progress.
std::filesystem::path get_base(const BaseDescription& base);

// `source` is a name of `base_list` (downloaded if needed), a model folder in Hugging Face's
// layout, or a run folder. Throws otherwise.
Base load_base(const std::string& source);

// A predictor of picture features: the input of the head, or the output of an embedding network.
// Throws for a base without a head.
Predictor picture_features(const Base& base, int threads = 1);

// A fixed pattern of pixels, normalised by `rules`: [1, 3, size, size].
Tensor test_picture(const PictureRules& rules);
// Relative difference between the features of the test picture and the expected ones. Throws if it
// is too large. Empty for a base without expected features.
std::optional<double> check_base(const BaseDescription& base);

}  // namespace artel::transfer
