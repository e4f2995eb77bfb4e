#include "artel/exec/cpu/matmul/gemm_bf16.h"

#include <fmt/format.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/libraries.h"

namespace artel::kernels {
namespace {

using dnnl::memory;

// Two bf16 numbers to a float.
int64_t floats_for(int64_t count) { return aligned_floats((count + 1) / 2); }

// Strides of a matrix that lies in rows of `leading` elements, transposed or not.
memory::dims strides(bool transposed, int64_t leading) {
  return transposed ? memory::dims{1, leading} : memory::dims{leading, 1};
}

void multiply(const GemmShape& s, const float* a, int64_t lda, const float* b, int64_t ldb,
              float* c, int64_t ldc, const GemmEpilogue& epilogue, std::byte* workspace) {
  limit_library_threads();
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto rounded = [&](const memory::dims& dims, bool transposed, const float* x,
                           int64_t leading, std::byte* to) {
    const memory::desc from(dims, memory::data_type::f32, strides(transposed, leading));
    const int64_t dense = transposed ? dims[0] : dims[1];
    memory source(from, engine, const_cast<float*>(x));
    memory target({dims, memory::data_type::bf16, strides(transposed, dense)}, engine, to);
    dnnl::reorder(source, target).execute(stream, source, target);
    return target;
  };
  const memory left = rounded({s.m, s.k}, s.transpose_a, a, lda, workspace);
  const memory right =
      rounded({s.k, s.n}, s.transpose_b, b, ldb, workspace + sizeof(float) * floats_for(s.m * s.k));
  const memory product({{s.m, s.n}, memory::data_type::f32, strides(false, ldc)}, engine, c);

  dnnl::primitive_attr attributes;
  if (epilogue.alpha != 1) attributes.set_output_scales(0, {epilogue.alpha});
  if (epilogue.accumulate) {
    dnnl::post_ops after;
    after.append_sum();
    attributes.set_post_ops(after);
  }
  const dnnl::matmul::desc matmul(left.get_desc(), right.get_desc(), product.get_desc());
  dnnl::matmul({matmul, attributes, engine})
      .execute(stream, {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, product}});
  stream.wait();
}

}  // namespace

size_t bf16_workspace_bytes(const GemmShape& s) {
  return sizeof(float) * (floats_for(s.m * s.k) + floats_for(s.k * s.n));
}

void bf16_product(const GemmShape& s, const float* a, int64_t lda, const float* b, int64_t ldb,
                  float* c, int64_t ldc, const GemmEpilogue& epilogue, std::byte* workspace) {
  try {
    multiply(s, a, lda, b, ldb, c, ldc, epilogue, workspace);
  } catch (const dnnl::error& error) {
    fail_in_onednn(error.status,
                   fmt::format("a bf16 product of {}x{} and {}x{}", s.m, s.k, s.k, s.n));
  }
}

}  // namespace artel::kernels
