// CIFAR-10 and CIFAR-100: 32 x 32 colour images.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"
#include "artel/data/dataset.h"

namespace artel::data {

// Rows of images [n, 3, 32, 32] of type u8 and their labels [n].
struct CifarPart {
  Tensor images;
  Tensor labels;
};

// Parses the authors' binary files: records of label bytes (one, or coarse and fine for CIFAR-100)
// and 3072 pixels in planes of red, green, and blue. Uses the fine label. Throws an Error of kind
// corrupt with file and offset.
CifarPart parse_cifar(const Bytes& bytes, int label_bytes);

// Parses a PNG picture in which each row of 1024 pixels is one image, with the labels as a JSON
// array.
CifarPart parse_cifar_png(const Bytes& picture, const Bytes& labels, int64_t first_label);

// `data_batch_1.bin` ... `data_batch_5.bin` and `test_batch.bin`; or the same names with `.png`,
// with the labels in `train_lables.json` and `test_lables.json` [sic].
Split cifar10(const std::filesystem::path& folder);
// `train.bin` and `test.bin`.
Split cifar100(const std::filesystem::path& folder);

}  // namespace artel::data
