// Published bases: networks whose trained weights others start from, by name.
//
//   const artel::transfer::Base base = artel::transfer::load_base("resnet50_keras");
//   artel::Predictor predictor(base.model(), base.sample, base.weights());
//   const artel::Tensor scores = predictor(pictures);  // pictures: normalised as base.pictures
//   says
//
// A base is fetched once from where it is published, verified by its SHA-256 digest, converted to
// the names and the order of axes of our zoo, and kept (data/fetch.h says where).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "artel/data/augment.h"
#include "artel/data/fetch.h"
#include "artel/nn/model.h"
#include "artel/predict/predictor.h"
#include "artel/run/config.h"
#include "artel/tensor/named_tensor.h"

namespace artel::transfer {

// How pictures looked when a base was trained: red, green, blue in [0, 1], scaled until the shorter
// side is `scaled`, the middle square of `size` cut out, and normalised for each channel.
struct PictureRules {
  int64_t size = 224;
  int64_t scaled = 256;
  std::vector<float> means = {0.485f, 0.456f, 0.406f};
  std::vector<float> deviations = {0.229f, 0.224f, 0.225f};

  data::Transform normalise() const { return data::normalise(means, deviations); }
};

// The features of a picture that anybody can make (`test_picture`), as the framework that published
// the network computes them.
struct ExpectedFeatures {
  std::vector<float> first;  // the first of them
  float length = 0;          // Euclidean, of all
};

// What is known of a base before it is fetched.
struct BaseDescription {
  std::string name;
  std::string text;     // one line
  std::string licence;  // of the weights
  std::string source;   // who published them, and where
  std::string trained_on;
  ModelConfig model;  // of the zoo, with its published options
  // The module of the last layer, whose parameters a network for other classes has anew; empty for
  // networks that read text.
  std::string head;
  int64_t features = 0;   // how many numbers the head gets, or tokens have
  bool headless = false;  // no head was published: it is zero
  bool embeds = false;    // its outputs are no classes: equal things get similar numbers
  TensorType sample;      // of one input; texts: [positions] of i32
  PictureRules pictures;  // ignored by networks that read text
  data::CatalogueEntry files;
  std::string weights;  // the file with them; empty: the folder, as Hugging Face has it
  std::function<NamedTensors(const std::filesystem::path& folder)> convert;  // none: not needed
  ExpectedFeatures expected;
};

// In the order in which to list them.
const std::vector<BaseDescription>& base_list();
// Throws for an unknown name, with the nearest known one.
const BaseDescription& find_base(const std::string& name);

// A base on this machine.
struct Base {
  std::string name;    // or the path that was given
  ModelConfig config;  // config.weights: the file or folder that has them, for RunConfig::model
  std::string head;    // these four as above
  int64_t features = 0;
  bool headless = false, embeds = false;
  TensorType sample;
  PictureRules pictures;
  std::vector<std::string> classes;  // their names; empty: unknown, or it tells no classes

  bool reads_text() const { return sample.dtype == DType::i32; }
  // As published, or with another number of classes.
  Model model(int64_t classes = 0) const;
  // Under the names of that model.
  NamedTensors weights() const;
};

// Where a base lies, converted; nothing if it has not been fetched yet.
std::optional<std::filesystem::path> find_base_folder(const BaseDescription& base);
// Fetches and converts it unless that is done. Shows progress.
std::filesystem::path get_base(const BaseDescription& base);

// `source` is a name of `base_list`, which is fetched if need be; a folder as Hugging Face
// publishes models; or a run, whose network is the base. Throws if it is none of them.
Base load_base(const std::string& source);

// What describes a picture: the numbers that the head gets, or the output of a network that embeds.
// Throws for a base without a head.
Predictor picture_features(const Base& base, int threads = 1);

// A pattern of pixels that depends on nothing but its size, normalised by `rules`:
// [1, 3, size, size].
Tensor test_picture(const PictureRules& rules);
// How far the features of that picture are from what is expected, relative to their length. Throws
// if that is too far. Nothing for a base without expectations.
std::optional<double> check_base(const BaseDescription& base);

}  // namespace artel::transfer
