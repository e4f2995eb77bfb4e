// A folder of pictures: each sub-folder is a class.
#pragma once

#include <filesystem>

#include "artel/data/dataset.h"

namespace artel::data {

struct ImageFolderOptions {
  // Side of the square images; pictures are scaled so that they cover it and cut in the middle.
  // 0 means the size of the first picture, for folders in which all have the same.
  int64_t size = 0;
  int channels = 3;  // 1 or 3
};

// The pictures (.jpg, .jpeg, .png) below each sub-folder, classes and files in the order of their
// names. They are decoded whenever they are read, so the set may be larger than memory.
DatasetPtr image_folder(const std::filesystem::path& folder,
                        const ImageFolderOptions& options = {});

// Sub-folders `train` and `test` (or `val`, `valid`, `validation`), each as above; the classes of
// both must be the same.
Split image_folders(const std::filesystem::path& folder, ImageFolderOptions options = {});

}  // namespace artel::data
