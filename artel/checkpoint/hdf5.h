// Weights in HDF5, the format of Keras (.h5): a tree of groups with data sets as leaves.
//
// Supports the default output of the HDF5 library: superblock 0 or 1, symbol-table groups, and
// contiguous data sets of little-endian integers or floating-point numbers. Skips attributes and
// other types.
#pragma once

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

bool is_hdf5(const Bytes& bytes);

// The data sets in the order of the groups, named by their path: "conv1/conv1/kernel:0". Tensors
// are views of the bytes where aligned. Throws an Error of kind corrupt for addresses outside the
// file, excessive nesting, and cycles; of kind unsupported for newer group or data-set layouts and
// for compressed data.
NamedTensors parse_hdf5(const Bytes& bytes);

}  // namespace artel::checkpoint
