// The idx format of MNIST and its relatives: a big-endian header with element type and extents,
// then the elements.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"
#include "artel/data/dataset.h"
#include "artel/tensor/from_bytes.h"

namespace artel::data {

// A tensor of type u8, i8, i16, i32, f32, or f64. One-byte elements are not copied. Throws an Error
// of kind corrupt with file and offset.
Tensor parse_idx(const Bytes& bytes);

// True if the bytes start like an idx file.
bool is_idx(const Bytes& bytes);

// Maps a plain file; inflates a gzip file.
Tensor read_idx(const std::filesystem::path& path);

// Images [1, height, width] and labels from the four files `train-images-idx3-ubyte`,
// `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, each plain or
// with `.gz`, in this folder. MNIST, Fashion-MNIST and KMNIST differ only in content.
Split idx_images(const std::filesystem::path& folder, std::vector<std::string> class_names = {});

// Reads idx files of a folder, plain or gzip, selected by name: "train" and "images" (or "data",
// "inputs"), "train" and "labels" (or "targets"), and the same with "test" or "t10k". Without test
// files, a random part of the training samples is held out. Bytes [n, height, width] are images.
// Integer labels are classes, counted over both parts; floating-point labels are values.
Split idx(const std::filesystem::path& folder, double test_fraction, uint64_t seed);

}  // namespace artel::data
