// The idx format of MNIST and its relatives: a big-endian header with element type and extents,
// then the elements.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"
#include "artel/data/dataset.h"
#include "artel/tensor/from_bytes.h"

namespace artel::data {

// A tensor of type u8, i8, i16, i32, f32 or f64. Bytes are not copied when the element type is one
// byte wide. Throws an Error of kind corrupt that names file and offset.
Tensor parse_idx(const Bytes& bytes);

// Whether the bytes begin like an idx file.
bool is_idx(const Bytes& bytes);

// A plain file is mapped, a gzip one is inflated.
Tensor read_idx(const std::filesystem::path& path);

// Images [1, height, width] and labels from the four files `train-images-idx3-ubyte`,
// `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, each plain or
// with `.gz`, in this folder. MNIST, Fashion-MNIST and KMNIST differ only in content.
Split idx_images(const std::filesystem::path& folder, std::vector<std::string> class_names = {});

// Any idx files in a folder, plain or gzip, by their names: one with "train" and "images" in it (or
// "data", "inputs"), one with "train" and "labels" (or "targets"), and those for tests with "test"
// or "t10k" instead; without the latter, a random part of the training samples. Bytes [n, height,
// width] are images. Labels are classes, as many as the largest label of both parts asks for, or
// values if they are floating.
Split idx(const std::filesystem::path& folder, double test_fraction, uint64_t seed);

}  // namespace artel::data
