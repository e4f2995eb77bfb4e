// A base: a trained network to begin with.
#pragma once

#include <string>
#include <vector>

#include "artel/data/text/tokenizer.h"
#include "artel/run/config.h"
#include "artel/run/setup.h"

namespace artel::transfer {

struct BaseSource {
  // A published base (bases.h); the folder of a run or one of its checkpoints; the folder of a
  // published model; or, with `weights`, the name of a network of the zoo.
  std::string name;
  std::string weights = {};                 // a file of any known format
  std::vector<std::string> overrides = {};  // of the configuration, such as "model.width=16"
};

struct BaseNetwork {
  std::string name;     // as the user named it
  ModelConfig model;    // `weights` says where they are
  int64_t classes = 0;  // of its last layer, as make_model wants them
  std::vector<std::string> class_names = {};
  TensorType sample;  // one sample as the network sees it
  // How images become such samples, after they have their size: "normalise ...".
  std::vector<std::string> prepare = {};
  std::string tokenizer = {};  // of texts: a path, or what data.tokenizer may be
  NamedTensors weights = {};   // under the names of the network

  Model network() const { return make_model(model, classes); }
  bool reads_images() const { return sample.dtype == DType::f32 && sample.shape.rank() == 3; }
  bool reads_text() const { return sample.dtype == DType::i32; }
};

// Throws for what is none, saying what can be done.
BaseNetwork open_base(const BaseSource& source);

// The data that a base is to be used on, as people name it: a folder of pictures, one for each
// class; a table (CSV) of labelled texts; arrays (NPZ); the name of a data set; or a configuration
// file (TOML), whose [data] section counts. Images are prepared as the base was trained: scaled to
// its size (or to `side`, or to data.image_size of such a file), with its channels, normalised;
// unless such a file has transforms of its own. Throws if they cannot be.
DataConfig data_for(const BaseNetwork& base, const std::string& data, int64_t side = 0);

}  // namespace artel::transfer
