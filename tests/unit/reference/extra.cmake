# Compiled programs, on the processor and on OpenCL, and artel's optimizers are compared with the reference.
target_sources(artel_reference_test PRIVATE unit/reference/cases.cc)
target_link_libraries(artel_reference_test PRIVATE artel_exec artel_optim)
set(shards 2)  # the first run on an OpenCL device compiles kernels
