// A folder of pictures: each sub-folder is a class.
#pragma once

#include <filesystem>

#include "artel/data/dataset.h"

namespace artel::data {

struct ImageFolderOptions {
  // Side of the square images; pictures are scaled so that they cover it and cut in the middle.
  // 0 means the size of the pictures, which must all have the same.
  int64_t size = 0;
  int channels = 3;  // 1 or 3
};

// The pictures (.jpg, .jpeg, .png) below each sub-folder, classes and files in the order of their
// names. Hidden files and folders are passed over, and folders without pictures are no classes.
// Pictures are decoded whenever they are read, so the set may be larger than memory; with size 0
// all headers are read at the start, to find one that differs.
DatasetPtr image_folder(const std::filesystem::path& folder,
                        const ImageFolderOptions& options = {});

// Sub-folders `train` and `test` (or `val`, `valid`, `validation`), each as above; the classes are
// those of `train`, and the test part has no others.
Split image_folders(const std::filesystem::path& folder, const ImageFolderOptions& options = {});

}  // namespace artel::data
