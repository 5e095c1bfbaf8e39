"""Messages and a file from Python. usage: mpi_python.py"""

import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
data = array.array("d", [rank] * 10)
other = array.array("d", [0] * 10)
comm.Sendrecv(data, (rank + 1) % size, recvbuf=other, source=(rank + size - 1) % size)
comm.Allreduce(MPI.IN_PLACE, other)
everything = comm.gather({"rank": rank}, root=0)
file = MPI.File.Open(comm, "python.dat", MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(rank * 80, data)
file.Read_at(0, other)
file.Close()
print(rank, other[0], everything)
