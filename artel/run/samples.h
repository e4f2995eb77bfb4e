// Single samples from user files, converted to the form of a data set's samples.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "artel/data/augment.h"
#include "artel/data/dataset.h"

namespace artel {

// Rows of inputs for a network: one from a JPEG or PNG picture, which is prepared like the pictures
// of a folder in training; one or several from an NPY file or, for networks with several inputs,
// from the arrays x, x2, ... of an NPZ file, or from an idx file; images also with their channels
// last. `augment` (without what is random in it) is applied to images. Throws if the file holds
// anything else.
Tensor read_samples(const std::filesystem::path& path, const data::SampleLayout& layout,
                    const data::Augmentation& augment);

// The samples of an NPY, NPZ or idx file, read when they are asked for; null if it is none of
// these.
data::DatasetPtr array_samples(const std::filesystem::path& path, const data::SampleLayout& layout);

// Some of them as rows of inputs, with the augmentation as above.
Tensor read_rows(const data::Dataset& samples, int64_t first, int64_t count,
                 const data::Augmentation& augment);

// A row of tokens from a text or, with a second one, a pair, as labelled_text.h makes them. Throws
// if the data set does not consist of such texts.
Tensor text_sample(const std::string& text, const std::optional<std::string>& second,
                   const data::SampleLayout& layout);

}  // namespace artel
