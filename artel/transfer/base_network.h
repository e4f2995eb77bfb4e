// A base: a trained network to start from.
#pragma once

#include <string>
#include <vector>

#include "artel/data/text/tokenizer.h"
#include "artel/run/config/config.h"
#include "artel/run/config/setup.h"

namespace artel::transfer {

struct BaseSource {
  // The name of a published base (bases.h), a run folder or one of its checkpoints, the folder of a
  // published model, or, with `weights`, the name of a zoo network.
  std::string name;
  std::string weights = {};                 // weight file of any supported format
  std::vector<std::string> overrides = {};  // configuration overrides such as "model.width=16"
};

struct BaseNetwork {
  std::string name;     // as given by the user
  ModelConfig model;    // `model.weights` is their location
  int64_t classes = 0;  // argument of make_model
  std::vector<std::string> class_names = {};
  TensorType sample;  // the network's input for one sample
  // Transforms that convert resized images to samples: "normalise ...".
  std::vector<std::string> prepare = {};
  std::string tokenizer = {};  // for texts: a path, or a value of data.tokenizer
  NamedTensors weights = {};   // by the network's parameter names

  Model network() const { return make_model(model, classes); }
  bool reads_images() const { return sample.dtype == DType::f32 && sample.shape.rank() == 3; }
  bool reads_text() const { return sample.dtype == DType::i32; }
};

// Throws if `source` is not a base. The message suggests alternatives.
BaseNetwork open_base(const BaseSource& source);

// The configuration of the data for a base. `data` is a folder of pictures with one subfolder per
// class, a CSV table of labelled texts, an NPZ file, the name of a data set, or a TOML file with a
// [data] section. Images are prepared as in the base's training: scaled to its size (or to `side`,
// or to data.image_size of the TOML file), converted to its channels, and normalised. A TOML file
// with transforms overrides this. Throws if the data does not fit the base.
DataConfig data_for(const BaseNetwork& base, const std::string& data, int64_t side = 0);

}  // namespace artel::transfer
