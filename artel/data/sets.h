// Data sets by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "artel/data/csv.h"
#include "artel/data/dataset.h"
#include "artel/tensor/named_tensor.h"

namespace artel::data {

// Images [1, 28, 28] of ten classes from the idx files in a folder, plain or gzip.
Split mnist(const std::filesystem::path& folder);
Split fashion_mnist(const std::filesystem::path& folder);
Split kmnist(const std::filesystem::path& folder);

// Arrays `x_train`, `y_train`, `x_test` and `y_test`; or `x` (also: `data`, `images`, `inputs`) and
// `y` (also: `target`, `labels`, `targets`), from which a random part is cut off for testing.
// Images [n, height, width] and [n, height, width, 1 or 3] of type u8 become planes.
Split npz(const NamedTensors& arrays, double test_fraction, uint64_t seed);

struct OpenOptions {
  std::filesystem::path path;  // file or folder; of a set of the catalogue: "" where it was put
  std::filesystem::path test_path;  // csv, libsvm: a second file
  double test_fraction = 0.1;       // what is cut off for testing where the set has no test part
  uint64_t seed = 0;                // of that cut
  TableOptions table;               // csv
  int64_t image_size = 0;           // folder: side of the images; 0 is that of the pictures
  int64_t context = 128;            // text: tokens in a sample
  int64_t stride = 0;               // text: distance of samples; 0 is `context`
  std::string tokenizer = "character";  // text: see make_tokenizer
  bool masked = false;                  // text: masked tokens and next sentences, for BERT
};

// Opens a set of the catalogue, which `get_set` may have fetched, or "folder", "csv", "npz", "npy",
// "libsvm", "text" or "labelled_text" at a path.
// Throws for another name with the nearest one, and for a set that is not on this machine with how
// to get it.
Split open_set(const std::string& name, const OpenOptions& options = {});

// All names that open_set knows.
std::vector<std::string> set_names();

}  // namespace artel::data
